"""The run file: what was asked, what was answered, what it cost. It alone remembers money spent."""
