"""Parsers of elements: a file for each sensor type, and for each element that sensors share."""
