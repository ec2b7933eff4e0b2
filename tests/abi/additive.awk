# Compares two tables that programs of structs.awk have printed: what was frozen, and what is. What
# is frozen must still be there, and what is new may only come behind it (docs/abi.md).
# Usage: awk -f additive.awk layout.def fixed.txt FROZEN NOW
BEGIN { failures = 0 }
function fail(text) { print "abi: " text; failures++ }

FILENAME ~ /layout\.def$/ {
    if (/^BHI_LAYOUT\(/) {
        split($0, part, /[(), ]+/)
        last_row[part[2]] = part[3]
    }
    next
}
FILENAME ~ /fixed\.txt$/ { if ($0 !~ /^#/ && NF) fixed[$1] = 1; next }
FILENAME != current { current = FILENAME; table++ }

$1 == "struct" { size[table, $2] = $3; align[table, $2] = $4; structs[table, $2] = 1 }
$1 == "field" {
    type = $0
    sub(/^field [^ ]+ [^ ]+ [^ ]+ [^ ]+ /, "", type)
    known[table, $2, $3] = $4 " " $5 " " type
    offset[table, $2, $3] = $4
    last[table, $2] = $3
}
$1 == "value" { value[table, $2] = $3 }
$1 == "function" { functions[table, $0] = 1 }

END {
    for (key in structs) {
        split(key, k, SUBSEP)
        s = k[2]
        if (k[1] == 1 && !((2, s) in structs)) fail(s " is gone")
        if (k[1] == 1 && ((2, s) in structs)) {
            if (align[1, s] != align[2, s]) fail(s " has another alignment")
            if (size[2, s] < size[1, s]) fail(s " is smaller than it was")
            if (s in fixed && s != "bh_template_call" && size[2, s] != size[1, s])
                fail(s " must not grow: it is in fixed.txt")
        }
        if (k[1] == 2) {
            if ((s in fixed) == (s in last_row))
                fail(s ": say in supervisor/context/layout.def or in tests/abi/fixed.txt whether it grows")
            if (s in last_row && align[2, s] != 8)
                fail(s " has not the alignment 8: a later field would change it, and all sizes")
            if (s in last_row && last_row[s] != last[2, s])
                fail(s ": its last field is " last[2, s] "; supervisor/context/layout.def needs the row " \
                     "BHI_LAYOUT(" s ", " last[2, s] ")")
        }
    }
    for (s in last_row) if (!((2, s) in structs)) fail(s " is in layout.def, and no struct")
    for (key in known) {
        split(key, k, SUBSEP)
        if (k[1] == 1 && known[2, k[2], k[3]] != known[1, k[2], k[3]] && k[2] != "bh_template_call")
            fail(k[2] "." k[3] " was " known[1, k[2], k[3]] \
                 " (offset, size, type), and is " known[2, k[2], k[3]])
        if (k[1] == 2 && ((1, k[2]) in structs) && !((1, k[2], k[3]) in known) && \
            !(k[2] in fixed && k[2] == "bh_detail") && offset[2, k[2], k[3]] < size[1, k[2]])
            fail(k[2] "." k[3] " is new and lies at " offset[2, k[2], k[3]] \
                 ", within the " size[1, k[2]] " bytes that older programs have")
    }
    for (key in value) {
        split(key, k, SUBSEP)
        if (k[1] == 1 && value[2, k[2]] != value[1, k[2]])
            fail(k[2] " was " value[1, k[2]] ", and is '" value[2, k[2]] "'")
    }
    for (key in functions) {
        split(key, k, SUBSEP)
        if (k[1] == 1 && !((2, k[2]) in functions)) fail("gone or changed: " k[2])
    }
    if (table != 2 || !((1, "bh_verdict") in structs) || !((2, "bh_verdict") in structs))
        fail("the tables were not understood")
    if (failures) {
        print "abi: programs that were built with tests/abi/include_0_2 would break."
        print "abi: docs/abi.md says how a struct grows. Before 0.2.0 is released another layout can" \
              " still be frozen: scripts/freeze-abi"
        exit 1
    }
}
