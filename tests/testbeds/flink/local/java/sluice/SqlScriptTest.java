package sluice;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

final class SqlScriptTest {
    @Test
    void statementsEndWithSemicolonsOutsideCommentsAndQuotes() {
        assertEquals(List.of("SELECT 1", "SET 'a' = 'b;c'", "SELECT `y;`"),
                SqlScript.statements("-- a; b\nSELECT 1;\n\n ;SET 'a' = 'b;c' ; /* x; */ SELECT `y;` -- end"));
        assertEquals(List.of("SELECT 'it''s; -- so'"), SqlScript.statements("SELECT 'it''s; -- so'"));
        assertEquals(List.of("SELECT /*+ HINT('a;') */ 1"), SqlScript.statements("SELECT /*+ HINT('a;') */ 1"));
        assertEquals(List.of(), SqlScript.statements(" -- nothing"));
    }
}
