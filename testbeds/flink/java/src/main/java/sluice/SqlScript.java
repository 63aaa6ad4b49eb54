package sluice;

import java.util.ArrayList;
import java.util.List;

/** Splits a SQL script: statements end with a semicolon; comments and quoted text may contain semicolons. */
final class SqlScript {
    private SqlScript() {}

    static List<String> statements(String script) {
        List<String> statements = new ArrayList<>();
        StringBuilder statement = new StringBuilder();
        for (int at = 0; at < script.length(); ) {
            int end = endOfToken(script, at);
            String token = script.substring(at, end);
            if (token.equals(";")) {
                add(statements, statement);
            } else {
                boolean comment = token.startsWith("--") || token.startsWith("/*");
                statement.append(comment ? " " : token);
            }
            at = end;
        }
        add(statements, statement);
        return statements;
    }

    private static void add(List<String> statements, StringBuilder statement) {
        if (!statement.toString().trim().isEmpty()) {
            statements.add(statement.toString().trim());
        }
        statement.setLength(0);
    }

    /** A comment or a quoted text is one token, anything else a character. */
    private static int endOfToken(String script, int at) {
        if (script.startsWith("--", at)) {
            return after(script, "\n", at);
        }
        if (script.startsWith("/*", at) && !script.startsWith("/*+", at)) {
            return after(script, "*/", at + 2);
        }
        char first = script.charAt(at);
        return first == '\'' || first == '`' || first == '"'
                ? after(script, String.valueOf(first), at + 1) : at + 1;
    }

    private static int after(String script, String end, int from) {
        int found = script.indexOf(end, from);
        return found < 0 ? script.length() : found + end.length();
    }
}
