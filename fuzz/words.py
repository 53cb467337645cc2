"""Words of the formats, for mutations to put in: what a parser takes for something."""

from __future__ import annotations

XML = (
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
    *(b'<!DOCTYPE x SYSTEM "file:///etc/passwd">', b'<?xml version="1.0" encoding="utf-16"?>'),
    *(b'encoding="rot13"', b"<graph>", b"</graph>", b'<node id="a"/>', b'<edge source="a" target="b"/>'),
    *(b'<data key="l">', b"</data>", b' xmlns:x="y"', b"<![CDATA[", b"]]>", b"<?x y?>", b"nodes", b"attvalue"),
    *(b"default", b"liststring", b"long", b"boolean", b"hyperedge", b"endpoint", b"port", b"spell", b'pid="a"'),
    *(b"dynamic", b'type="directed"', b'id="0"', b'for="node"', b"integer", b"viz:size", b"parents"),
)
JSON = (
    *(b'"nodes":', b'"edges":', b'"target":', b'"critical_nodes":', b'"critical_edges":', b"[0, 1]"),
    *(b'"label":', b'"x":', b'"attributes":', b'"weight":', b'"source":', b"[[", b"]]", b"1e999", b"-0.0"),
    *(b'"\\ud800"', b'"\\n"', b"[]", b"{}"),
)
SMILES = (
    *(b"[", b"]", b"(", b")", b"%99", b"%(100)", b"[2H]", b"[Fe+2]", b"[C@@H]", b"->", b"~", b"*", b"$", b"."),
    *(b"[nH]", b"[CH99999]", b"[C+999]", b"[99999C]", b"[#6]", b"C:C", b"/C=C\\", b"[C:1]", b">>", b"[Og]"),
    *(b" |x|", b"C1CC1"),
)
SDF = (
    *(
        b"$$$$\n",
        b"M  END\n",
        b"M  V30 ",
        b"V3000",
        b"V2000",
        b"> <label>\n",
        b"-\nM  V30 ",
        b"COUNTS 999999999 0 0 0 0",
    ),
    *(b"M  CHG  1   1   1\n", b"M  ISO  1   1 999\n", b"M  RGP  1   1   1\n", b"M  STY  1   1 DAT\n", b"M  ALS   1"),
    *(b"ATOMS=(99999999 1)", b"ENDPTS=(3 1 2 3) ATTACH=ANY", b"M  V30 BEGIN SGROUP\n", b"M  V30 BEGIN COLLECTION\n"),
    *(b"M  V30 1 SUP 0 ATOMS=(1 1) LABEL=x\n", b"  1  2  9  0\n", b" Xx ", b" R# ", b" *  ", b"  1  1  1  0\n"),
)
ZIP = (
    *(b"%%% S_A.txt\n", b"%%% S_edge_labels.txt\n", b"%%% T_A.txt\n", b"%%% ../x\n", b"%%% C:\\x\n", b"|12"),
    *(b"|14", b"1, 2\n"),
)
TENSORS = (
    *(b'"F32"', b'"I64"', b'"BOOL"', b'"F16"', b'"BF16"', b'"F8_E4M3"', b'"data_offsets":', b'"shape":'),
    b'"U8"',
)
TU = ZIP[:3]
NAMES = (b"compounds:", b"sizes=", b"~root", b"per_size=")
REQUESTS = (
    *(b"GET ", b"HEAD ", b"DELETE ", b"/explain", b"/explain/file", b"/report", b"/../", b"Host: evil.example\r\n"),
    *(
        b"Origin: null\r\n",
        b"Sec-Fetch-Site: cross-site\r\n",
        b"Content-Encoding: gzip\r\n",
        b"Expect: 100-continue\r\n",
    ),
    *(b"Transfer-Encoding: chunked\r\n", b"Authorization: Bearer \xe9\r\n", b"--x\r\n", b"\r\n\r\n", b'filename="'),
    *(
        b'"smiles":',
        b'"explained":',
        b'"target":',
        b'"fidelity":',
        b'"picture":',
        b"[[[[",
        b'"\\ud800"',
        b".sdf",
        b".graphml",
    ),
    *(b"charset=utf-16", b"application/json", b"multipart/form-data; boundary=", b"c1ccccc1", b"%00", b"[Na+].[Cl-]"),
)
