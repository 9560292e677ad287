// Nanoseconds a sample of gz-sensors' own sensors: gz_sensors FILE.sdf SAMPLES ROUNDS
//
// Each IMU, magnetometer and altimeter on the first link of FILE's model is loaded as Gazebo loads it and updated SAMPLES
// times, a millisecond of simulated time apart, nobody subscribed. Prints a line a sensor, "TYPE NANOSECONDS", the best of
// ROUNDS. The truth is set anew before every update because the IMU and the altimeter add their noise to the values that
// they hold; updates are forced because from version 7 on a rate above 1000 Hz never returns.

#ifdef IGNITION
#include <ignition/sensors/AltimeterSensor.hh>
#include <ignition/sensors/ImuSensor.hh>
#include <ignition/sensors/MagnetometerSensor.hh>
namespace library = ignition;
#else
#include <gz/sensors/AltimeterSensor.hh>
#include <gz/sensors/ImuSensor.hh>
#include <gz/sensors/MagnetometerSensor.hh>
namespace library = gz;
#endif

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <sdf/sdf.hh>
#include <stdexcept>
#include <string>

using Time = std::chrono::steady_clock;

const library::math::Pose3d pose(1.0, 2.0, 3.0, 0.1, 0.2, 0.3);

void SetUp(library::sensors::ImuSensor &sensor) { sensor.SetGravity({0.0, 0.0, -9.8}); }
void SetTruth(library::sensors::ImuSensor &sensor) {
  sensor.SetWorldPose(pose);
  sensor.SetAngularVelocity({0.1, 0.2, 0.3});
  sensor.SetLinearAcceleration({0.4, 0.5, 0.6});
}
double Reading(const library::sensors::ImuSensor &sensor) { return sensor.LinearAcceleration().X(); }

void SetUp(library::sensors::MagnetometerSensor &sensor) { sensor.SetWorldMagneticField({6e-6, 2.3e-5, -4.2e-5}); }
void SetTruth(library::sensors::MagnetometerSensor &sensor) { sensor.SetWorldPose(pose); }
double Reading(const library::sensors::MagnetometerSensor &sensor) { return sensor.MagneticField().X(); }

void SetUp(library::sensors::AltimeterSensor &sensor) { sensor.SetVerticalReference(1.0); }
void SetTruth(library::sensors::AltimeterSensor &sensor) {
  sensor.SetPosition(3.0);
  sensor.SetVerticalVelocity(0.5);
}
double Reading(const library::sensors::AltimeterSensor &sensor) { return sensor.VerticalPosition(); }

template <class Kind>
double Nanoseconds(const sdf::Sensor &sheet, int samples, int rounds) {
  Kind sensor;
  if (!sensor.Load(sheet) || !sensor.Init()) throw std::runtime_error("not loaded: " + sheet.Name());
  SetUp(sensor);
  library::sensors::Sensor &base = sensor;  // a kind's own Update hides the one that takes `force`
  Time::duration now{0};
  const auto step = [&] {
    SetTruth(sensor);
    if (!base.Update(now, true)) throw std::runtime_error("not updated: " + sheet.Name());
    now += std::chrono::milliseconds(1);
  };

  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (int i = 0; i < 100; ++i) {
    step();
    least = std::min(least, Reading(sensor));
    most = std::max(most, Reading(sensor));
  }
  if (!(least < most)) throw std::runtime_error("without noise: " + sheet.Name());

  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const auto began = Time::now();
    for (int i = 0; i < samples; ++i) step();
    best = std::min(best, std::chrono::duration<double, std::nano>(Time::now() - began).count() / samples);
  }
  return best;
}

int Measure(const std::string &path, int samples, int rounds) {
  sdf::Root root;
  const auto errors = root.Load(path);
  for (const auto &error : errors) std::cerr << error.Message() << "\n";
  if (!errors.empty() || root.Model() == nullptr) return 1;
  const sdf::Link &link = *root.Model()->LinkByIndex(0);
  for (uint64_t i = 0; i < link.SensorCount(); ++i) {
    const sdf::Sensor &sheet = *link.SensorByIndex(i);
    double nanoseconds = 0.0;
    if (sheet.Type() == sdf::SensorType::IMU)
      nanoseconds = Nanoseconds<library::sensors::ImuSensor>(sheet, samples, rounds);
    else if (sheet.Type() == sdf::SensorType::MAGNETOMETER)
      nanoseconds = Nanoseconds<library::sensors::MagnetometerSensor>(sheet, samples, rounds);
    else if (sheet.Type() == sdf::SensorType::ALTIMETER)
      nanoseconds = Nanoseconds<library::sensors::AltimeterSensor>(sheet, samples, rounds);
    else
      throw std::runtime_error("not measured: " + sheet.TypeStr());
    std::cout << sheet.TypeStr() << " " << nanoseconds << std::endl;
  }
  return 0;
}

int main(int count, char **words) {
  if (count != 4) {
    std::cerr << "gz_sensors FILE.sdf SAMPLES ROUNDS\n";
    return 2;
  }
  try {
    return Measure(words[1], std::stoi(words[2]), std::stoi(words[3]));
  } catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
