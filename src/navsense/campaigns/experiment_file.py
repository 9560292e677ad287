"""Experiment files (TOML)."""
def read_experiment(path): raise NotImplementedError
