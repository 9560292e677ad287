"""Examples that scripts and campaigns can import."""
