"""How the next pair is chosen: what is known so far, the document's rounds, and the gain of information."""
