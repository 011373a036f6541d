//! Texts of the program as JavaScript has them. Each is made once: a text that crosses is decoded.

use std::cell::RefCell;

use dueline::ordered::OrderedMap;
use js_sys::JsString;

/// Texts by their addresses and lengths.
pub(crate) struct Literals(RefCell<OrderedMap<(usize, usize), JsString>>);

thread_local! {
    static LITERALS: Literals = const { Literals::new() };
}

impl Literals {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(OrderedMap::new()))
    }

    /// The text that was made for this one.
    pub(crate) fn of(
        &self,
        text: &'static str,
        make: impl FnOnce(&'static str) -> JsString,
    ) -> JsString {
        let place = (text.as_ptr() as usize, text.len());
        let mut known = self.0.borrow_mut();
        known.entry(place).or_insert_with(|| make(text)).clone()
    }
}

/// A name of a property, or a word of a closed set.
pub(crate) fn literal(text: &'static str) -> JsString {
    LITERALS.with(|literals| literals.of(text, JsString::from))
}
