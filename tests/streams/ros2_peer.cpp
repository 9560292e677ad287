// Subscribers and publishers of ROS 2 topics on Fast DDS, with the types that its generator makes of ros2_types.idl.
//
//   ros2_peer DOMAIN [+|-]TYPE:TOPIC...      until the end of its input
//
// "+" makes a reliable publisher, "-" a best-effort publisher, and no sign a subscriber. Each line of output is a word
// and its values: participant, writer, matched, lost, node, and the message types. Each line of input is a message of
// the publisher: its numbers and names, separated by spaces.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>

#include "ros2_types.cxx"
#include "ros2_typesPubSubTypes.cxx"

using namespace eprosima::fastdds::dds;
using namespace eprosima::fastrtps::rtps;

std::mutex mutex;

std::string hex(const unsigned char *bytes, size_t size)
{
  std::string text;
  char digits[3];
  for (size_t i = 0; i < size; ++i)
  {
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    text += digits;
  }
  return text;
}

struct Listener : DomainParticipantListener
{
  void on_participant_discovery(DomainParticipant *, ParticipantDiscoveryInfo &&found) override
  {
    std::lock_guard<std::mutex> lock(mutex);
    const auto &data = found.info.m_userData;
    std::printf("participant %d %.*s\n", static_cast<int>(found.status), static_cast<int>(data.size()),
      reinterpret_cast<const char *>(data.data()));
  }

  void on_publisher_discovery(DomainParticipant *, WriterDiscoveryInfo &&found) override
  {
    std::lock_guard<std::mutex> lock(mutex);
    const auto &guid = found.info.guid();
    const auto &qos = found.info.m_qos;
    std::printf("writer %d %s%s %s %s reliable=%d latched=%d %.*s\n", static_cast<int>(found.status),
      hex(guid.guidPrefix.value, 12).c_str(), hex(guid.entityId.value, 4).c_str(), found.info.topicName().c_str(),
      found.info.typeName().c_str(), qos.m_reliability.kind == RELIABLE_RELIABILITY_QOS,
      qos.m_durability.kind == TRANSIENT_LOCAL_DURABILITY_QOS, static_cast<int>(qos.m_userData.size()),
      reinterpret_cast<const char *>(qos.m_userData.data()));
  }
};

void print_header(const char *type, const std_msgs::msg::Header &header)
{
  std::printf("%s %d %u %s", type, header.stamp().sec(), header.stamp().nanosec(), header.frame_id().c_str());
}

void print(const sensor_msgs::msg::Imu &imu)
{
  print_header("Imu", imu.header());
  const auto &w = imu.angular_velocity();
  const auto &a = imu.linear_acceleration();
  std::printf(" %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", w.x(), w.y(), w.z(), a.x(), a.y(), a.z(),
    imu.linear_acceleration_covariance()[8]);
}

void print(const sensor_msgs::msg::NavSatFix &fix)
{
  print_header("NavSatFix", fix.header());
  std::printf(" %.17g %.17g %.17g %d\n", fix.latitude(), fix.longitude(), fix.altitude(),
    fix.position_covariance_type());
}

void print(const rosgraph_msgs::msg::Clock &clock)
{
  std::printf("Clock %d %u\n", clock.clock().sec(), clock.clock().nanosec());
}

void print(const tf2_msgs::msg::TFMessage &message)
{
  std::printf("TFMessage %zu", message.transforms().size());
  for (const auto &transform : message.transforms())
  {
    const auto &p = transform.transform().translation();
    const auto &q = transform.transform().rotation();
    std::printf(" %s %s %.17g %.17g %.17g %.17g", transform.header().frame_id().c_str(),
      transform.child_frame_id().c_str(), p.x(), p.y(), p.z(), q.w());
  }
  std::printf("\n");
}

void print(const nav_msgs::msg::Odometry &odometry)
{
  print_header("Odometry", odometry.header());
  const auto &p = odometry.pose().pose().position();
  std::printf(" %s %.17g %.17g %.17g\n", odometry.child_frame_id().c_str(), p.x(), p.y(), p.z());
}

void print(const rmw_dds_common::msg::ParticipantEntitiesInfo &info)
{
  for (const auto &node : info.node_entities_info_seq())
  {
    std::printf("node %s %s %s %zu", hex(info.gid().data().data(), 16).c_str(), node.node_namespace().c_str(),
      node.node_name().c_str(), node.reader_gid_seq().size());
    for (const auto &gid : node.writer_gid_seq())
      std::printf(" %s", hex(gid.data().data(), 16).c_str());
    std::printf("\n");
  }
}

template <typename Message> struct Receiver : DataReaderListener
{
  void on_data_available(DataReader *reader) override
  {
    Message message;
    SampleInfo info;
    while (reader->take_next_sample(&message, &info) == ReturnCode_t::RETCODE_OK)
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (info.valid_data)
        print(message);
    }
  }

  void on_sample_lost(DataReader *, const SampleLostStatus &status) override
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::printf("lost %d\n", status.total_count);
  }
};

DomainParticipant *participant;
Subscriber *subscriber;

template <typename Type> void read_topic(const std::string &name, bool latched)
{
  TypeSupport type(new Type());
  type.register_type(participant);
  auto topic = participant->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT);
  DataReaderQos qos = DATAREADER_QOS_DEFAULT;
  qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = latched ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  qos.history().kind = KEEP_ALL_HISTORY_QOS;
  if (subscriber->create_datareader(topic, qos, new Receiver<typename Type::type>()) == nullptr)
    std::exit(1);
}

void read(std::istream &input, std_msgs::msg::Header &header)
{
  input >> header.stamp().sec() >> header.stamp().nanosec() >> header.frame_id();
}

template <typename Vector> void read_vector(std::istream &input, Vector &vector)
{
  input >> vector.x() >> vector.y() >> vector.z();
}

void read(std::istream &input, nav_msgs::msg::Odometry &odometry)
{
  read(input, odometry.header());
  input >> odometry.child_frame_id();
  auto &pose = odometry.pose().pose();
  read_vector(input, pose.position());
  read_vector(input, pose.orientation());
  input >> pose.orientation().w();
  read_vector(input, odometry.twist().twist().linear());
  read_vector(input, odometry.twist().twist().angular());
}

void read(std::istream &input, tf2_msgs::msg::TFMessage &message)
{
  message.transforms().emplace_back();
  auto &transform = message.transforms().back();
  read(input, transform.header());
  input >> transform.child_frame_id();
  read_vector(input, transform.transform().translation());
  read_vector(input, transform.transform().rotation());
  input >> transform.transform().rotation().w();
}

struct Matcher : DataWriterListener
{
  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &status) override
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::printf("matched %d\n", status.current_count);
  }
};

template <typename Type> void write_topic(const std::string &name, bool is_reliable)
{
  TypeSupport type(new Type());
  type.register_type(participant);
  auto topic = participant->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT);
  DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
  qos.reliability().kind = is_reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  qos.history().kind = KEEP_LAST_HISTORY_QOS;
  qos.history().depth = 5000;
  auto publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  auto writer = publisher->create_datawriter(topic, qos, new Matcher());
  for (std::string line; std::getline(std::cin, line);)
  {
    typename Type::type message;
    std::istringstream input(line);
    read(input, message);
    writer->write(&message);
  }
  writer->wait_for_acknowledgments({5, 0});
}

int main(int, char **argv)
{
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Listener listener;
  participant = DomainParticipantFactory::get_instance()->create_participant(
    std::atoi(argv[1]), PARTICIPANT_QOS_DEFAULT, &listener, StatusMask::none());
  subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  read_topic<rmw_dds_common::msg::ParticipantEntitiesInfoPubSubType>("ros_discovery_info", true);
  for (char **argument = argv + 2; *argument; ++argument)
  {
    const bool publishes = **argument == '+' || **argument == '-';
    const std::string text = *argument + publishes;
    const std::string type = text.substr(0, text.find(':')), topic = "rt" + text.substr(text.find(':') + 1);
    if (publishes && type == "Odometry")
      write_topic<nav_msgs::msg::OdometryPubSubType>(topic, **argument == '+');
    else if (publishes && type == "TFMessage")
      write_topic<tf2_msgs::msg::TFMessagePubSubType>(topic, **argument == '+');
    else if (type == "Imu")
      read_topic<sensor_msgs::msg::ImuPubSubType>(topic, false);
    else if (type == "NavSatFix")
      read_topic<sensor_msgs::msg::NavSatFixPubSubType>(topic, false);
    else if (type == "Clock")
      read_topic<rosgraph_msgs::msg::ClockPubSubType>(topic, false);
    else if (type == "TFMessage")
      read_topic<tf2_msgs::msg::TFMessagePubSubType>(topic, topic == "rt/tf_static");
    else if (type == "Odometry")
      read_topic<nav_msgs::msg::OdometryPubSubType>(topic, false);
    else
      return 1;
  }
  while (std::getchar() != EOF)
    continue;
  participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant);
}
