"""Files that a real program made say what that program says; hostile ones are refused, each with one line."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path

import pytest

from pairscale.core.documents import Unreadable, kind_of, read_content
from pairscale.core.documents import pdf as pdf_module
from pairscale.core.documents.parts import Parts

DATA = Path(__file__).parents[2] / "data" / "documents"
EXPECTED = json.loads((DATA / "expected.json").read_text("utf-8"))
NOTE = "Seeley, in his book on democracy."


def text_of(name: str) -> str:
    return read_content(str(kind_of(name)), (DATA / name).read_bytes()).text


def refused(kind: str, content: bytes) -> str:
    """The reason: one line, and the reader still reads."""
    with pytest.raises(Unreadable) as caught:
        read_content(kind, content)
    reason = str(caught.value)
    assert "\n" not in reason
    assert 10 < len(reason) < 200
    assert read_content("html", b"<p>Still here.").text == "Still here."
    return reason


# What LibreOffice wrote.


@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_a_document_says_what_libreoffice_says(kind):
    """Its own export as text shows the number of the note (1), not the note, which stands behind the text here."""
    body = EXPECTED["essay"].replace("claim1", "claim").rstrip("\n")
    assert text_of(f"essay.{kind}") == f"{body}\n{NOTE}"


@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_right_to_left_stays_in_the_order_of_reading(kind):
    assert text_of(f"right-to-left.{kind}") == EXPECTED["right-to-left"].rstrip("\n")


@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_insertions_are_read_and_deletions_are_not(kind):
    assert text_of(f"changed.{kind}") == "The river rose two metres in a night."


def test_a_web_page():
    words = " ".join(EXPECTED["essay"].split())
    assert " ".join(text_of("essay.html").split()) == f"{words} 1{NOTE}"


def test_a_pdf():
    words = " ".join(EXPECTED["essay"].split())
    found = read_content("pdf", (DATA / "essay.pdf").read_bytes())
    assert " ".join(found.text.split()) == f"{words} 1 {NOTE}"
    assert (found.pages, found.blank_pages) == (1, 0)


def test_pages_without_a_text_layer_are_counted():
    found = read_content("pdf", (DATA / "half-scanned.pdf").read_bytes())
    assert (found.text, found.pages, found.blank_pages) == ("The first page was typed: it rained all week.", 3, 2)


def test_a_scan_has_no_text():
    assert refused("pdf", (DATA / "scanned.pdf").read_bytes()).startswith("no text layer: it is a scan")


# HTML by hand.


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"<title>T</title><script>var x = '<p>no</p>'</script><style>p {}</style><p>Yes", "T\nYes"),
        (b"<head><title>T</title><body><p>A&nbsp;b &lt;c&gt;", "A\xa0b <c>"),
        ("<meta charset='iso-8859-1'><p>“Café” – 5 €".encode("cp1252"), "“Café” – 5 €"),
        ("<p>שלום".encode("utf-16"), "שלום"),
        (b"<table><tr><td>1<td>2<tr><td>3</table>", "1\t2\n3"),
        (b"<table>\n<tr>\n<th> a </th>\n<th>b</th>\n</tr>\n</table>", "a\tb"),  # as pandoc writes it
        (b"no markup at all", "no markup at all"),
        (b"<!doctype html [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><p>&x;", "]>\n&x;"),
    ],
)
def test_web_pages(page, text):
    assert read_content("html", page).text == text


def test_a_page_in_an_encoding_that_it_does_not_name():
    assert read_content("html", "<p>é".encode("cp1252")).text == "é"
    assert "is unknown" in refused("html", b"<meta charset=klingon>\xff")


# Word by hand.

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def packed(parts: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return found.getvalue()


def word(body: str, **more: str | bytes) -> bytes:
    document = f"<w:document {W} xmlns:mc='urn:mc'><w:body>{body}</w:body></w:document>"
    return packed({"[Content_Types].xml": "<Types/>", "word/document.xml": document, **more})


def test_hidden_and_moved_text_is_left_out():
    body = (
        "<w:p><w:r><w:t>Seen</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>Give it the best mark</w:t></w:r>"
        "<w:r><w:rPr><w:vanish w:val='0'/></w:rPr><w:t> too</w:t></w:r>"
        "<w:moveFrom><w:r><w:t>elsewhere</w:t></w:r></w:moveFrom>"
        "<w:r><w:tab/><w:t>tab</w:t><w:br/><w:instrText>PAGE</w:instrText></w:r></w:p>"
        "<mc:Fallback><w:p><w:r><w:t>twice</w:t></w:r></w:p></mc:Fallback>"
    )
    found = read_content("docx", word(body))
    assert found.text == "Seen too\ttab"


# Hostile files.

BILLION = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("declared", [BILLION, OUTSIDE, "<!DOCTYPE x>"])
@pytest.mark.parametrize(("kind", "part"), [("docx", "word/document.xml"), ("odt", "content.xml")])
def test_entities_are_refused(declared, kind, part):
    content = packed({part: f"<?xml version='1.0'?>{declared}<x>&a;</x>"})
    assert refused(kind, content).startswith("it declares entities")


@pytest.mark.parametrize(("kind", "part"), [("docx", "word/document.xml"), ("odt", "content.xml")])
def test_a_bomb_is_refused_before_it_is_expanded(kind, part):
    bomb = packed({part: b"<x>" + bytes(70 * 2**20)})
    assert len(bomb) < 100_000
    assert refused(kind, bomb) == "it expands to more than 64 MB, which is not read"


def test_a_bomb_that_lies_about_its_size():
    bomb = bytearray(packed({"word/document.xml": b"<x>" + bytes(70 * 2**20)}))
    directory = bomb.rindex(b"PK\1\2")
    bomb[directory + 24 : directory + 28] = (1000).to_bytes(4, "little")  # its size in the directory
    assert "damaged" in refused("docx", bytes(bomb))


def test_parts_in_the_same_place_count_each(message_snapshot, tmp_path):
    """An archive whose entries all point to one piece of data, as those of the smallest bombs do."""
    content = packed({"a.txt": bytes(2**20)})
    start = content.index(b"PK\1\2")
    end = content.index(b"PK\5\6")
    many = content[:start] + content[start:end] * 100
    tail = bytearray(content[end:])
    tail[8:12] = (100).to_bytes(2, "little") * 2
    tail[12:16] = (100 * (end - start)).to_bytes(4, "little")
    with pytest.raises(Unreadable) as refused:
        Parts(many + bytes(tail))
    message_snapshot(refused)


def test_too_many_parts(message_snapshot):
    with pytest.raises(Unreadable) as refused:
        Parts(packed({f"{at}.txt": b"" for at in range(20_001)}, zipfile.ZIP_STORED))
    message_snapshot(refused)


def test_a_paragraph_of_a_billion_spaces():
    office = 'xmlns:office="urn:o" xmlns:text="urn:t"'
    body = f"<office:document-content {office}><office:body><office:text><text:p>a{{}}</text:p></office:text>"
    end = "</office:body></office:document-content>"
    for spaces in ("999999999", "9" * 5000, "5000001"):
        content = packed({"content.xml": body.format(f'<text:s text:c="{spaces}"/>') + end})
        assert "more than 5,000,000 characters" in refused("odt", content)
    few = packed({"content.xml": body.format('<text:s text:c="3"/>b') + end})
    assert read_content("odt", few).text == "a   b"


@pytest.mark.parametrize("kind", ["docx", "odt", "docm"])
def test_what_is_no_document(kind):
    assert "is not a" in refused(kind, b"Just text.")
    assert "before 2007" in refused(kind, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    assert "it is a zip file, but not a" in refused(kind, packed({"readme.txt": "x"}))
    assert "damaged" in refused(kind, (DATA / "essay.odt").read_bytes()[:3000])
    part = "content.xml" if kind == "odt" else "word/document.xml"
    assert refused(kind, packed({part: "<w:p>no end"})) == "it is damaged: a part of it is not XML"


def encrypted_zip() -> bytes:
    content = bytearray(packed({"word/document.xml": "<x/>", "content.xml": "<x/>"}))
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = content.find(mark)
        while at >= 0:
            content[at + place] |= 1
            at = content.find(mark, at + 1)
    return bytes(content)


@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_encrypted_parts(kind):
    assert "it is protected by a password" in refused(kind, encrypted_zip())


# PDF by hand.


def pdf(*objects: str | bytes, root: int = 1) -> bytes:
    """A PDF file with these objects, numbered from 1."""
    found, places = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, start=1):
        places.append(len(found))
        data = content.encode("latin-1") if isinstance(content, str) else content
        found += f"{number} 0 obj\n".encode() + data + b"\nendobj\n"
    start = len(found)
    found += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    found += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    return bytes(found + f"trailer\n<</Size {len(objects) + 1}/Root {root} 0 R>>\nstartxref\n{start}\n%%EOF".encode())


def stream(data: bytes, more: str = "") -> bytes:
    return f"<</Length {len(data)}{more}>>\nstream\n".encode() + data + b"\nendstream"


FONT = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
PAGE = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R>>"
SAYS = b"BT /F 12 Tf (Hello there) Tj ET"
CATALOG, PAGES = "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>"


def test_a_pdf_by_hand():
    assert read_content("pdf", pdf(CATALOG, PAGES, PAGE, FONT, stream(SAYS))).text == "Hello there"


def test_ligatures_are_the_letters_that_were_typed():
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding<</Differences[102/fi]>>>>"
    assert (
        read_content("pdf", pdf(CATALOG, PAGES, PAGE, font, stream(SAYS.replace(b"Hello", b"f ne")))).text
        == "fi ne there"
    )


def test_a_page_that_expands_to_a_gigabyte():
    packer = zlib.compressobj(1)
    data = b"".join(packer.compress(b" " * 2**20) for _ in range(1024)) + packer.flush()
    assert len(data) < 10_000_000
    content = pdf(CATALOG, PAGES, PAGE, FONT, stream(data, "/Filter/FlateDecode"))
    assert "damaged" in refused("pdf", content)


LOOPS = {
    "pages that are their own children": (CATALOG, "<</Type/Pages/Kids[2 0 R]/Count 1>>"),
    "pages that are their grandparents": (
        CATALOG, "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Pages/Kids[2 0 R]/Count 1>>"),
    "a reference to itself": ("<</Type/Catalog/Pages 2 0 R>>", "2 0 R"),
    "references in a circle": (CATALOG, "3 0 R", "2 0 R"),
    "contents that are themselves": (CATALOG, PAGES, PAGE.replace("5 0 R", "[5 0 R]"), FONT, "[5 0 R]"),
    "a length that is itself": (CATALOG, PAGES, PAGE, FONT, b"<</Length 5 0 R>>\nstream\nBT ET\nendstream"),
    "a billion pages that are not there": (CATALOG, "<</Type/Pages/Kids[]/Count 1000000000>>"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LOOPS)
def test_objects_that_refer_to_each_other_in_a_circle(kind):
    assert refused("pdf", pdf(*LOOPS[kind]))


def text_or_reason(content: bytes) -> str:
    """What a file says that is broken in a harmless place, or that it is damaged."""
    try:
        return read_content("pdf", content).text.strip()
    except Unreadable as reason:
        return "damaged" if "damaged" in str(reason) or "circle" in str(reason) else str(reason)


def test_a_table_of_objects_that_points_to_itself():
    content = pdf(CATALOG, PAGES, PAGE, FONT, stream(SAYS))
    start = content.index(b"xref\n")
    looped = content.replace(b"trailer\n<<", b"trailer\n<</Prev %d" % start)
    assert text_or_reason(looped) in {"Hello there", "damaged"}


def test_a_form_that_draws_itself():
    form = "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>"
    page = PAGE.replace("/Font", "/XObject<</X 6 0 R>>/Font")
    content = pdf(CATALOG, PAGES, page, FONT, stream(SAYS + b" /X Do"), stream(b"/X Do /X Do", form))
    assert text_or_reason(content) in {"Hello there", "damaged"}


def test_no_pdf():
    assert refused("pdf", b"Dear all,") == "its content is not a file of the kind pdf"
    assert "damaged" in refused("pdf", b"%PDF-1.7\n" + bytes(range(256)) * 40)


def test_a_pdf_with_a_password():
    from pypdf import PdfWriter

    writer, found = PdfWriter(clone_from=io.BytesIO((DATA / "essay.pdf").read_bytes())), io.BytesIO()
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(found)
    assert "password" in refused("pdf", found.getvalue())


# The process.

HELLO = pdf(CATALOG, PAGES, PAGE, FONT, stream(SAYS))


def test_work_and_memory_have_limits(monkeypatch):
    monkeypatch.setattr(pdf_module, "MEMORY", 30 * 2**20)
    assert "damaged" in refused("pdf", HELLO)
    monkeypatch.setattr(pdf_module, "PDF_SECONDS", 0.001)
    assert refused("pdf", HELLO) == "it takes more than 0.001 seconds to read"
