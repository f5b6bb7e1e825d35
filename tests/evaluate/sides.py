"""What many tests of two sides share: a judge that prefers the longer answer, and files of answers."""

import json

import pairscale as ps


def longer(A, B):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


def write(path, rows):
    text = json.dumps(rows) if path.suffix == ".json" else "".join(f"{json.dumps(row)}\n" for row in rows)
    path.write_text(text, "utf-8")
    return path


def rows_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def compared(a, b, **options):
    return ps.ab(a, b, criterion="longer", judge=longer, progress=False, **options)
