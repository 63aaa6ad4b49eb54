package sluice;

import java.util.List;

public final class SqlScriptTest {
    public static void main(String[] args) {
        assert SqlScript.statements("-- a; b\nSELECT 1;\n\n ;SET 'a' = 'b;c' ; /* x; */ SELECT `y;` -- end")
                .equals(List.of("SELECT 1", "SET 'a' = 'b;c'", "SELECT `y;`"));
        assert SqlScript.statements("SELECT 'it''s; -- so'").equals(List.of("SELECT 'it''s; -- so'"));
        assert SqlScript.statements("SELECT /*+ HINT('a;') */ 1").equals(List.of("SELECT /*+ HINT('a;') */ 1"));
        assert SqlScript.statements(" -- nothing").isEmpty();
    }
}
