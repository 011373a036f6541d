//! Goal: what the server's sources can answer is in `docs/http.md`. Method: the routes and the error codes are
//! read from the sources and looked up in the document.
#![cfg(test)]

const DOCUMENT: &str = include_str!("../../../docs/http.md");
const ROUTER: &str = include_str!("../src/routes/router.rs");
const PROBLEMS: [&str; 4] = [
    include_str!("../src/routes/body.rs"),
    include_str!("../src/routes/local_only.rs"),
    include_str!("../src/routes/problem.rs"),
    include_str!("../src/routes/problem_of.rs"),
];

/// The string literals of a source.
fn literals(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        line.split('"')
            .nth(1)
            .filter(|_| line.matches('"').count() == 2)
    })
}

#[test]
fn every_route_is_documented() {
    let routes: Vec<String> = literals(ROUTER)
        .filter(|literal| literal.starts_with('/'))
        .map(|route| {
            route
                .replace("{timer}", "{id}")
                .replace("{dead_letter}", "{dead_id}")
        })
        .collect();
    assert!(
        routes.len() >= 11,
        "the router was not understood: {routes:?}"
    );
    for route in routes {
        let told = [format!("{route}`"), format!("{route}:")];
        assert!(
            told.iter().any(|told| DOCUMENT.contains(told)),
            "docs/http.md does not tell of {route}"
        );
    }
}

#[test]
fn every_error_code_is_documented() {
    let codes: Vec<&str> = PROBLEMS
        .iter()
        .flat_map(|source| source.lines())
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","))
        .filter(|text| {
            text.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        })
        .collect();
    assert!(
        codes.len() >= 20,
        "the sources were not understood: {codes:?}"
    );
    for code in codes {
        assert!(
            DOCUMENT.contains(&format!("`{code}`")),
            "docs/http.md does not tell of {code}"
        );
    }
}
