//! Walks a list of the API page by page until enough is read.

use serde_json::{Map, Value};

use crate::client::{Client, Path, Request};
use crate::failure::Failure;

/// The largest page the server gives.
const PAGE_SIZE_MAX: u32 = 1_000;

/// Which list, and how much of it.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) path: Path,
    /// The name of the array in each page.
    pub(crate) array: &'static str,
    pub(crate) limit: u32,
    pub(crate) page_token: Option<String>,
    pub(crate) filter: Vec<(&'static str, String)>,
}

/// Reads pages until `limit` items are read or the list ends. The answer has the shape of one page.
pub(crate) fn read(client: &Client, walk: Walk) -> Result<Value, Failure> {
    let mut items = Vec::new();
    let mut token = walk.page_token;
    loop {
        let left = walk
            .limit
            .saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
        let mut request = Request::get(walk.path.clone())
            .query("page_size", Some(left.min(PAGE_SIZE_MAX)))
            .query("page_token", token.take());
        for (name, value) in &walk.filter {
            request = request.query(name, Some(value));
        }
        let mut page = client.send(&request)?;
        if let Some(Value::Array(found)) = page.get_mut(walk.array).map(Value::take) {
            items.extend(found);
        }
        token = page
            .get("next_page_token")
            .and_then(Value::as_str)
            .map(str::to_owned);
        if token.is_none() || items.len() >= walk.limit as usize {
            break;
        }
    }
    let mut whole = Map::new();
    whole.insert(walk.array.to_owned(), Value::Array(items));
    if let Some(token) = token {
        whole.insert("next_page_token".to_owned(), Value::String(token));
    }
    Ok(Value::Object(whole))
}

/// The items of a page, or none.
pub(crate) fn items<'a>(page: &'a Value, array: &str) -> &'a [Value] {
    page.get(array)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
