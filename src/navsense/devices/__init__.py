"""What instruments say on a wire or in a file, byte by byte: pure codecs, and what of a reading goes into them."""
