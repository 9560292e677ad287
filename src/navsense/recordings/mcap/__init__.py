"""MCAP files: records, reader, writer and recovery, by the nouns of the MCAP specification."""
