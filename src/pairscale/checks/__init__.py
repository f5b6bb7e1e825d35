"""Checks on judges: does the position sway them, which template does so least, and do they agree with each other."""
