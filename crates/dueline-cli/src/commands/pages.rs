//! Walks a list of the API page by page until enough is read.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

use crate::client::{Client, Path, Request};
use crate::document::Document;
use crate::failure::Failure;
use crate::output::{Column, Output};

/// The largest page the server gives.
const PAGE_SIZE_MAX: u32 = 1_000;

/// Which list, how much of it, and how it is shown.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) path: Path,
    /// The name of the array in each page.
    pub(crate) array: &'static str,
    pub(crate) limit: u32,
    pub(crate) page_token: Option<String>,
    pub(crate) filter: Vec<(&'static str, String)>,
}

/// Reads pages until `limit` items are read or the list ends, and shows them.
pub(crate) fn show(
    client: &Client,
    walk: Walk,
    columns: &[Column],
    none: &str,
    output: &Output,
) -> Result<(), Failure> {
    let array = walk.array;
    let (items, next) = read(client, walk)?;
    let mut whole: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
    whole.insert(array, to_raw_value(&items).map_err(Failure::Json)?);
    if let Some(token) = &next {
        whole.insert(
            "next_page_token",
            to_raw_value(token).map_err(Failure::Json)?,
        );
    }
    let whole = serde_json::to_string(&whole)
        .and_then(|text| Document::parse(&text))
        .map_err(Failure::Json)?;
    output.list(&whole, &items, columns, none)?;
    match next {
        Some(token) if !output.is_json() => {
            output.note(&format!("more follow: --limit N, or --page-token {token}"))
        }
        _ => Ok(()),
    }
}

fn read(client: &Client, walk: Walk) -> Result<(Vec<Document>, Option<String>), Failure> {
    let limit = walk.limit as usize;
    let mut items = Vec::new();
    let mut token = walk.page_token;
    loop {
        let left = limit
            .saturating_sub(items.len())
            .min(PAGE_SIZE_MAX as usize);
        let mut request = Request::get(walk.path.clone())
            .query("page_size", Some(left))
            .query("page_token", token.take());
        for (name, value) in &walk.filter {
            request = request.query(name, Some(value));
        }
        let page = client.send(&request)?.fields();
        items.extend(
            page.get(walk.array)
                .map(Document::items)
                .unwrap_or_default(),
        );
        token = page.get("next_page_token").and_then(Document::as_text);
        if token.is_none() || items.len() >= limit {
            return Ok((items, token));
        }
    }
}
