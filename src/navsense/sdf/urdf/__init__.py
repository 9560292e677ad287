"""URDF robots and xacro files, which become SDF elements."""
