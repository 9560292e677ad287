// The verdict of libsdformat on SDF and URDF files, one JSON object a line: the codes of its errors, the text of the
// first, and each sensor with its type and its pose (x y z qw qx qy qz) in the world. The model of a file without a
// world stands in an empty one. The pose is null if it cannot be resolved, as in joints. Models are searched in the
// folders of an argument SDF_PATH=FOLDER:..., which holds for the files after it. An included model that is not there is
// replaced by a static model without links, in the folder STUBS, and its URI is listed.
//
// g++ -std=c++17 -O1 sensors.cc -o sensors $(pkg-config --cflags --libs sdformat12)
// ./sensors STUBS [SDF_PATH=FOLDER:...] FILE ...
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <sdf/sdf.hh>

using ignition::math::Pose3d;

static bool first;
static std::set<std::string> missing;

static std::string quote(const std::string &text)
{
  std::string quoted = "\"";
  for (const char c : text)
  {
    if (c == '"' || c == '\\')
    {
      quoted += '\\';
    }
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

static void separate()
{
  std::printf(first ? "" : ", ");
  first = false;
}

static std::string replace(const std::string &uri, const std::filesystem::path &stubs)
{
  missing.insert(uri);
  std::filesystem::path name = std::filesystem::path(uri.substr(0, uri.find_last_not_of('/') + 1)).filename();
  if (name.has_extension() && name.stem() == "model")
  {
    name = std::filesystem::path(uri).parent_path().filename();
  }
  const auto file = stubs / (name.string() + ".sdf");
  std::ofstream(file) << "<sdf version='1.6'><model name='" << name.stem().string() << "'><static>true</static></model></sdf>";
  return file.string();
}

static bool resolve(const sdf::SemanticPose &semantic, const std::string &to, const Pose3d &outer, Pose3d &found)
{
  Pose3d inner;
  if (!semantic.Resolve(inner, to).empty())
  {
    return false;
  }
  found = outer * inner;
  return true;
}

static void print(const std::string &name, const sdf::Sensor &sensor, bool placed, const Pose3d &pose)
{
  separate();
  std::printf("[%s, %s, ", quote(name).c_str(), quote(sensor.TypeStr()).c_str());
  if (!placed)
  {
    std::printf("null]");
    return;
  }
  std::printf("[%.17g, %.17g, %.17g, %.17g, %.17g, %.17g, %.17g]]", pose.Pos().X(), pose.Pos().Y(), pose.Pos().Z(),
              pose.Rot().W(), pose.Rot().X(), pose.Rot().Y(), pose.Rot().Z());
}

static void list(const sdf::Model &model, const std::string &around, bool placed, const Pose3d &pose)
{
  const std::string path = around + model.Name() + "::";
  const auto each = [&](const auto &parent)
  {
    for (uint64_t i = 0; i < parent.SensorCount(); ++i)
    {
      const auto *sensor = parent.SensorByIndex(i);
      Pose3d found;
      const bool sensor_placed = resolve(sensor->SemanticPose(), "__model__", pose, found) && placed;
      print(path + parent.Name() + "::" + sensor->Name(), *sensor, sensor_placed, found);
    }
  };
  for (uint64_t i = 0; i < model.LinkCount(); ++i)
  {
    each(*model.LinkByIndex(i));
  }
  for (uint64_t i = 0; i < model.JointCount(); ++i)
  {
    each(*model.JointByIndex(i));
  }
  for (uint64_t i = 0; i < model.ModelCount(); ++i)
  {
    const auto *inner = model.ModelByIndex(i);
    Pose3d of_model;
    const bool model_placed = resolve(inner->SemanticPose(), "__model__", pose, of_model) && placed;
    list(*inner, path, model_placed, of_model);
  }
}

int main(int count, char **files)
{
  sdf::Console::Instance()->SetQuiet(true);
  if (count < 2)
  {
    return 2;
  }
  const std::filesystem::path stubs(files[1]);
  sdf::setFindCallback([&stubs](const std::string &uri) { return replace(uri, stubs); });
  for (int i = 2; i < count; ++i)
  {
    const std::string argument = files[i];
    const std::string variable = "SDF_PATH=";
    if (argument.compare(0, variable.size(), variable) == 0)
    {
      setenv("SDF_PATH", argument.c_str() + variable.size(), 1);
      continue;
    }
    missing.clear();
    sdf::Root root;
    const sdf::Errors errors = root.Load(files[i]);
    first = true;
    std::printf("{\"file\": %s, \"errors\": [", quote(files[i]).c_str());
    for (const auto &error : errors)
    {
      separate();
      std::printf("%d", static_cast<int>(error.Code()));
    }
    std::printf("], \"message\": %s, \"sensors\": [", quote(errors.empty() ? "" : errors[0].Message()).c_str());
    first = true;
    for (uint64_t w = 0; w < root.WorldCount(); ++w)
    {
      const auto *world = root.WorldByIndex(w);
      for (uint64_t j = 0; j < world->ModelCount(); ++j)
      {
        const auto *model = world->ModelByIndex(j);
        Pose3d of_model;
        const bool placed = resolve(model->SemanticPose(), "world", Pose3d::Zero, of_model);
        list(*model, "", placed, of_model);
      }
    }
    if (root.Model() != nullptr)
    {
      list(*root.Model(), "", true, root.Model()->RawPose());
    }
    std::printf("], \"missing\": [");
    first = true;
    for (const auto &uri : missing)
    {
      separate();
      std::printf("%s", quote(uri).c_str());
    }
    std::printf("]}\n");
    std::fflush(stdout);
  }
  return 0;
}
