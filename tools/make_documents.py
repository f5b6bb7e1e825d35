"""Make ``tests/data/documents`` with LibreOffice: the files of real programs that the tests read.

Run it where ``soffice`` is on the path (Debian: ``libreoffice-writer-nogui libreoffice-calc-nogui``)::

    python tools/make_documents.py

Every source is a flat OpenDocument that stands here; LibreOffice converts it. ``expected.json`` keeps what LibreOffice
itself exports as text, against which the readers are tested.
"""

from __future__ import annotations

import base64
import json
import shutil
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

TARGET = Path(__file__).parents[1] / "tests" / "data" / "documents"

_NAMESPACES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" '
    'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" '
    'xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" '
    'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" '
    'office:version="1.2"'
)
_STYLES = (
    '<office:automatic-styles><style:style style:name="Break" style:family="paragraph">'
    '<style:paragraph-properties fo:break-before="page"/></style:style>'
    '<style:style style:name="Right" style:family="paragraph">'
    '<style:paragraph-properties style:writing-mode="rl-tb"/></style:style></office:automatic-styles>'
)


def written(body: str) -> str:
    """A flat OpenDocument text with this body."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {_NAMESPACES} '
        f'office:mimetype="application/vnd.oasis.opendocument.text">{_STYLES}'
        f"<office:body><office:text>{body}</office:text></office:body></office:document>"
    )


def picture(width: int = 240, height: int = 120) -> str:
    """A small grey picture with black bars, such as a scan of lines of writing, as base64."""
    rows = b"".join(
        b"\0" + bytes(30 if (y // 8) % 3 == 0 and 16 < x < 220 else 235 for x in range(width)) for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    png += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode("ascii")


SCANNED = (
    '<draw:frame draw:name="scan" text:anchor-type="as-char" svg:width="15cm" svg:height="8cm">'
    f"<draw:image><office:binary-data>{picture()}</office:binary-data></draw:image></draw:frame>"
)
ESSAY = written(
    "<text:h text:outline-level='1'>Why I keep bees</text:h>"
    "<text:p>My grandmother kept bees; so do I. They need<text:s text:c='3'/>little, and give much — café honey costs "
    "12&#160;€.</text:p>"
    "<text:p>One hive,<text:tab/>two queens?<text:line-break/>Never.</text:p>"
    "<text:p>A claim<text:note text:id='n1' text:note-class='footnote'><text:note-citation>1</text:note-citation>"
    "<text:note-body><text:p>Seeley, in his book on democracy.</text:p></text:note-body></text:note> needs a source."
    "</text:p>"
    "<table:table><table:table-column table:number-columns-repeated='2'/><table:table-row>"
    "<table:table-cell><text:p>year</text:p></table:table-cell><table:table-cell><text:p>kilos</text:p>"
    "</table:table-cell></table:table-row></table:table>"
    "<text:p>Remarks follow<office:annotation><dc:creator>T</dc:creator><text:p>A comment of the teacher.</text:p>"
    "</office:annotation>.</text:p>"
)
CHANGED = written(
    "<text:tracked-changes><text:changed-region xml:id='c1' text:id='c1'><text:deletion><office:change-info>"
    "<dc:creator>A</dc:creator><dc:date>2026-01-02T03:04:05</dc:date></office:change-info>"
    "<text:p>a deleted word </text:p></text:deletion></text:changed-region>"
    "<text:changed-region xml:id='c2' text:id='c2'><text:insertion><office:change-info><dc:creator>A</dc:creator>"
    "<dc:date>2026-01-02T03:04:05</dc:date></office:change-info></text:insertion></text:changed-region>"
    "</text:tracked-changes>"
    "<text:p>The river <text:change text:change-id='c1'/>rose <text:change-start text:change-id='c2'/>two metres "
    "<text:change-end text:change-id='c2'/>in a night.</text:p>"
)
RIGHT_TO_LEFT = written(
    "<text:p text:style-name='Right'>המכתב הזה נכתב מימין לשמאל, עם המספר 42 בתוכו.</text:p>"
    "<text:p text:style-name='Right'>هذه رسالة قصيرة بالعربية.</text:p>"
)
HALF_SCANNED = written(
    "<text:p>The first page was typed: it rained all week.</text:p>"
    f"<text:p text:style-name='Break'>{SCANNED}</text:p><text:p text:style-name='Break'>{SCANNED}</text:p>"
)
SHEET = (
    f'<?xml version="1.0" encoding="UTF-8"?><office:document {_NAMESPACES} '
    'office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet>'
    '<table:table table:name="class"><table:table-column table:number-columns-repeated="5"/>{rows}</table:table>'
    "</office:spreadsheet></office:body></office:document>"
)


def cell(value: object, more: str = "") -> str:
    """A cell of a sheet: a formula, a number or a text."""
    if isinstance(value, str) and value.startswith("="):
        return f'<table:table-cell {more} table:formula="of:{value}" office:value-type="float" office:value="0"/>'
    if isinstance(value, int):
        return f'<table:table-cell {more} office:value-type="float" office:value="{value}"/>'
    return f'<table:table-cell {more} office:value-type="string"><text:p>{value}</text:p></table:table-cell>'


PUPILS = [
    ("s01", "Zoë Müller", "Smoke rises over the café where my uncle, a cook, burns onions every single Sunday."),
    ("s02", "Ana Peña", "I would rather walk to school in the rain than wait for a bus that never comes on time."),
    ("s03", "Björn Ås", "Nothing teaches patience like a garden: you sow in March and you wait until July at least."),
]


def sheet() -> str:
    """A class list with merged cells for the class and a formula for the length of each essay."""
    rows = [["student_id", "name", "class", "essay", "length"]]
    rows += [[uid, name, "7b", text, f"=LEN([.D{at}])"] for at, (uid, name, text) in enumerate(PUPILS, start=2)]
    lines = []
    for at, row in enumerate(rows):
        cells = []
        for name, value in zip(rows[0], row, strict=True):
            if name == "class" and at == 1:
                cells.append(cell(value, f'table:number-rows-spanned="{len(PUPILS)}" table:number-columns-spanned="1"'))
            elif name == "class" and at > 1:
                cells.append("<table:covered-table-cell/>")
            else:
                cells.append(cell(value))
        lines.append(f"<table:table-row>{''.join(cells)}</table:table-row>")
    return SHEET.replace("{rows}", "".join(lines))


CSV = "csv:Text - txt - csv (StarCalc):{separator},34,{encoding},1,,0,false,true,false"
DOCUMENTS = {
    "essay": (ESSAY, ("docx", "odt", "pdf", "html:HTML (StarWriter)")),
    "changed": (CHANGED, ("docx", "odt")),
    "right-to-left": (RIGHT_TO_LEFT, ("docx", "odt")),
    "half-scanned": (HALF_SCANNED, ("pdf",)),
    "scanned": (written(f"<text:p>{SCANNED}</text:p>"), ("pdf",)),
}


def convert(source: Path, kind: str, folder: Path) -> Path:
    """Convert a file with LibreOffice."""
    profile = f"-env:UserInstallation=file://{folder.parent}/profile"
    command = ["soffice", profile, "--headless", "--convert-to", kind, "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)  # noqa: S603 - LibreOffice, on files of ours
    made = folder / f"{source.stem}.{kind.partition(':')[0]}"
    if not made.exists():
        raise SystemExit(f"LibreOffice made no {made.name}")
    return made


def main() -> None:
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    expected = {}
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary) / "work"
        work.mkdir()
        for name, (content, kinds) in DOCUMENTS.items():
            source = work / f"{name}.fodt"
            source.write_text(content, "utf-8")
            for kind in kinds:
                shutil.copy(convert(source, kind, work), TARGET)
            text = convert(source, "txt:Text (encoded):UTF8", work).read_text("utf-8-sig")
            expected[name] = text.replace("\r\n", "\n")
        table = work / "class.fods"
        table.write_text(sheet(), "utf-8")
        shutil.copy(convert(table, "xlsx", work), TARGET)
        for name, separator, encoding in (("class-cp1252", 59, 1), ("class-utf16", 9, 65535), ("class-utf8", 44, 76)):
            made = convert(table, CSV.format(separator=separator, encoding=encoding), work)
            shutil.copy(made, TARGET / f"{name}.csv")
    (TARGET / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
