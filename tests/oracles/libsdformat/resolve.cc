// What libsdformat makes of SDF files, one JSON object a line: the codes of its errors; the pose of every model, link,
// joint, frame and sensor (x y z qw qx qy qz) in the model, link or world around it; gravity and magnetic field of the
// world; the noise of every IMU (mean, stddev, bias mean, bias stddev, precision for each axis of rate, then of force).
//
// g++ -std=c++17 -O1 resolve.cc -o resolve $(pkg-config --cflags --libs sdformat12) && ./resolve FILE ...
#include <cstdio>
#include <string>

#include <sdf/sdf.hh>

using ignition::math::Pose3d;
using ignition::math::Vector3d;

static bool first;

static void comma()
{
  std::printf(first ? "" : ", ");
  first = false;
}

static void pose(const char *kind, const std::string &name, const sdf::SemanticPose &semantic, const std::string &to)
{
  Pose3d found;
  comma();
  std::printf("[\"%s\", \"%s\", ", kind, name.c_str());
  if (semantic.Resolve(found, to).empty())
  {
    std::printf("[%.17g, %.17g, %.17g, %.17g, %.17g, %.17g, %.17g]]", found.Pos().X(), found.Pos().Y(), found.Pos().Z(),
                found.Rot().W(), found.Rot().X(), found.Rot().Y(), found.Rot().Z());
  }
  else
  {
    std::printf("null]");
  }
}

static void poses(const sdf::Model &model, const std::string &around)
{
  const std::string path = around + model.Name() + "::";
  for (uint64_t i = 0; i < model.LinkCount(); ++i)
  {
    const auto *link = model.LinkByIndex(i);
    pose("link", path + link->Name(), link->SemanticPose(), "__model__");
    for (uint64_t j = 0; j < link->SensorCount(); ++j)
    {
      const auto *sensor = link->SensorByIndex(j);
      pose("sensor", path + link->Name() + "::" + sensor->Name(), sensor->SemanticPose(), "");
    }
  }
  for (uint64_t i = 0; i < model.JointCount(); ++i)
  {
    pose("joint", path + model.JointByIndex(i)->Name(), model.JointByIndex(i)->SemanticPose(), "__model__");
  }
  for (uint64_t i = 0; i < model.FrameCount(); ++i)
  {
    pose("frame", path + model.FrameByIndex(i)->Name(), model.FrameByIndex(i)->SemanticPose(), "__model__");
  }
  for (uint64_t i = 0; i < model.ModelCount(); ++i)
  {
    pose("model", path + model.ModelByIndex(i)->Name(), model.ModelByIndex(i)->SemanticPose(), "__model__");
    poses(*model.ModelByIndex(i), path);
  }
}

static void vector(const char *name, const Vector3d &value)
{
  comma();
  std::printf("[\"%s\", [%.17g, %.17g, %.17g]]", name, value.X(), value.Y(), value.Z());
}

static void noises(const sdf::Model &model, const std::string &around)
{
  const std::string path = around + model.Name() + "::";
  for (uint64_t i = 0; i < model.LinkCount(); ++i)
  {
    const auto *link = model.LinkByIndex(i);
    for (uint64_t j = 0; j < link->SensorCount(); ++j)
    {
      const auto *sensor = link->SensorByIndex(j);
      const auto *imu = sensor->ImuSensor();
      if (imu == nullptr)
      {
        continue;
      }
      comma();
      std::printf("[\"%s\", [", (path + link->Name() + "::" + sensor->Name()).c_str());
      const sdf::Noise axes[] = {imu->AngularVelocityXNoise(),     imu->AngularVelocityYNoise(),
                                 imu->AngularVelocityZNoise(),     imu->LinearAccelerationXNoise(),
                                 imu->LinearAccelerationYNoise(), imu->LinearAccelerationZNoise()};
      for (const auto &noise : axes)
      {
        std::printf("%s[%.17g, %.17g, %.17g, %.17g, %.17g]", &noise == axes ? "" : ", ", noise.Mean(), noise.StdDev(),
                    noise.BiasMean(), noise.BiasStdDev(), noise.Precision());
      }
      std::printf("]]");
    }
  }
  for (uint64_t i = 0; i < model.ModelCount(); ++i)
  {
    noises(*model.ModelByIndex(i), path);
  }
}

int main(int count, char **files)
{
  sdf::Console::Instance()->SetQuiet(true);
  for (int i = 1; i < count; ++i)
  {
    sdf::Root root;
    const sdf::Errors errors = root.Load(files[i]);
    const auto *world = root.WorldByIndex(0);
    first = true;
    std::printf("{\"file\": \"%s\", \"errors\": [", files[i]);
    for (const auto &error : errors)
    {
      comma();
      std::printf("%d", static_cast<int>(error.Code()));
    }
    first = true;
    std::printf("], \"poses\": [");
    for (uint64_t j = 0; world != nullptr && j < world->FrameCount(); ++j)
    {
      pose("frame", world->FrameByIndex(j)->Name(), world->FrameByIndex(j)->SemanticPose(), "world");
    }
    for (uint64_t j = 0; world != nullptr && j < world->ModelCount(); ++j)
    {
      pose("model", world->ModelByIndex(j)->Name(), world->ModelByIndex(j)->SemanticPose(), "world");
      poses(*world->ModelByIndex(j), "");
    }
    if (root.Model() != nullptr)
    {
      poses(*root.Model(), "");
    }
    first = true;
    std::printf("], \"fields\": [");
    if (world != nullptr)
    {
      vector("gravity", world->Gravity());
      vector("magnetic_field", world->MagneticField());
    }
    first = true;
    std::printf("], \"noises\": [");
    for (uint64_t j = 0; world != nullptr && j < world->ModelCount(); ++j)
    {
      noises(*world->ModelByIndex(j), "");
    }
    if (root.Model() != nullptr)
    {
      noises(*root.Model(), "");
    }
    std::printf("]}\n");
  }
  return 0;
}
