"""MCAP files: records, reader, writer and recovery."""
