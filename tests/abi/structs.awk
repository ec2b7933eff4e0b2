# Reads preprocessed headers (cc -E -P) and writes a C program that prints each public struct's
# size, alignment and fields, each enum's values and each exported function's declaration.
{ text = text $0 "\n" }

function trim(s) { gsub(/[ \t\n]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }

# |type| is what stands before the name, with its stars, and what stands behind it.
function field(struct, name, type) {
    printf "    FIELD(%s, %s, \"%s\")\n", struct, name, type
}

function fields(struct, body,    n, i, k, parts, declarators, declaration, name, base, one, after) {
    n = split(body, parts, ";")
    for (i = 1; i <= n; i++) {
        declaration = trim(parts[i])
        if (declaration == "") continue
        if (match(declaration, /\(\*[a-z_0-9]+\)/)) {
            field(struct, substr(declaration, RSTART + 2, RLENGTH - 3), declaration)
            continue
        }
        k = split(declaration, declarators, ",")
        base = declarators[1]
        sub(/[ *]*[A-Za-z_0-9]+ *(\[[^]]*\] *)*$/, "", base)
        for (j = 1; j <= k; j++) {
            one = trim(declarators[j])
            if (j == 1) one = trim(substr(one, length(base) + 1))
            match(one, /[A-Za-z_0-9]+/)
            name = substr(one, RSTART, RLENGTH)
            after = substr(one, RSTART + RLENGTH)
            gsub(/[ \t\n]/, "", after)
            field(struct, name, base substr(one, 1, RSTART - 1) after)
        }
    }
}

function values(body,    n, i, parts, name) {
    n = split(body, parts, ",")
    for (i = 1; i <= n; i++) {
        name = trim(parts[i])
        sub(/ *=.*/, "", name)
        if (name != "") printf "    VALUE(%s)\n", name
    }
}

END {
    print "#include <bulkhead/bulkhead.h>"
    print "#include <bulkhead/judge.h>"
    print "#include <stdio.h>"
    print "#define STRUCT(t) printf(\"struct %s %zu %zu\\n\", #t, sizeof(t), _Alignof(t));"
    print "#define FIELD(t, f, type) \\"
    print "    printf(\"field %s %s %zu %zu %s\\n\", #t, #f, offsetof(t, f), sizeof(((t *)0)->f), type);"
    print "#define VALUE(v) printf(\"value %s %d\\n\", #v, (int)(v));"
    print "#define FUNCTION(text) puts(\"function \" text);"
    print "int main(void) {"
    for (rest = text; match(rest, /typedef (struct|enum) bh_[a-z_0-9]+ \{/); ) {
        head = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        end = index(rest, "}")
        body = substr(rest, 1, end - 1)
        rest = substr(rest, end + 1)
        name = head
        sub(/typedef (struct|enum) /, "", name)
        sub(/ \{/, "", name)
        if (head ~ /struct/) { printf "    STRUCT(%s)\n", name; fields(name, body) }
        else values(body)
    }
    n = split(text, statements, ";")
    for (i = 1; i <= n; i++) {
        one = statements[i]
        sub(/.*[{}]/, "", one) # what an inline function before it has left
        one = trim(one)
        if (one !~ /visibility\("default"\)/) continue
        gsub(/__attribute__ ?\(\([a-z_]+(\("default"\))?\)\) ?/, "", one)
        gsub(/"/, "\\\"", one)
        printf "    FUNCTION(\"%s\")\n", one
    }
    print "    return 0;\n}"
}
