//! `dueline timer create | get | list | update | cancel | fire`

use std::process::ExitCode;

use serde_json::{Value, json};

use super::pages::{self, Walk};
use super::timer_body::body;
use crate::arguments::{
    CancelTimer, CreateTimer, GetTimer, ListTimers, Timer, TimerVerb, UpdateTimer,
};
use crate::client::{Client, Path, Request};
use crate::failure::Failure;
use crate::output::{Column, Output, field};

const COLUMNS: &[Column] = &[
    Column {
        heading: "ID",
        cell: |timer| field(timer, "id"),
    },
    Column {
        heading: "DUE",
        cell: |timer| field(timer, "due_at"),
    },
    Column {
        heading: "STATE",
        cell: |timer| field(timer, "state"),
    },
    Column {
        heading: "ATTEMPT",
        cell: |timer| field(timer, "attempt"),
    },
    Column {
        heading: "GENERATION",
        cell: |timer| field(timer, "generation"),
    },
];

pub(crate) fn run(timer: Timer, output: &mut Output) -> Result<ExitCode, Failure> {
    match timer.verb {
        TimerVerb::Create(create) => self::create(create, output),
        TimerVerb::Get(get) => self::get(&get, output),
        TimerVerb::List(list) => self::list(list, output),
        TimerVerb::Update(update) => self::update(update, output),
        TimerVerb::Cancel(cancel) => self::cancel(&cancel, output),
        TimerVerb::Fire(fire) => self::fire(&fire, output),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn create(create: CreateTimer, output: &mut Output) -> Result<(), Failure> {
    let fields = create.fields;
    if fields.at.is_none() && fields.delay.is_none() {
        return Err(Failure::Usage(
            "when is it due? give --at TIME or --in DELAY".to_owned(),
        ));
    }
    if fields.url.is_none() {
        return Err(Failure::Usage(
            "where does the webhook go? give --url URL".to_owned(),
        ));
    }
    let client = Client::new(&create.server)?;
    let request = match &create.id {
        Some(id) => Request::put(Path::timer(&create.partition, id)),
        None => Request::post(Path::timers(&create.partition)),
    };
    let request = request
        .header("if-none-match", create.if_absent.then_some("*"))
        .if_match(create.if_match.as_deref())
        .header("idempotency-key", create.idempotency_key)
        .json(body(fields)?);
    output.row(&client.send(&request)?, COLUMNS)
}

fn get(get: &GetTimer, output: &mut Output) -> Result<(), Failure> {
    let client = Client::new(&get.server)?;
    let timer = client.send(&Request::get(Path::timer(&get.partition, &get.id)))?;
    output.fields(&timer)
}

fn list(list: ListTimers, output: &mut Output) -> Result<(), Failure> {
    let client = Client::new(&list.server)?;
    let mut filter = Vec::new();
    filter.extend(
        list.state
            .map(|state| ("state", state.as_text().to_owned())),
    );
    filter.extend(list.due_before.map(|time| ("due_before", time)));
    filter.extend(list.prefix.map(|prefix| ("prefix", prefix)));
    let page = pages::read(
        &client,
        Walk {
            path: Path::timers(&list.partition),
            array: "timers",
            limit: list.limit,
            page_token: list.page_token,
            filter,
        },
    )?;
    output.list(&page, pages::items(&page, "timers"), COLUMNS, "no timers")
}

fn update(update: UpdateTimer, output: &mut Output) -> Result<(), Failure> {
    let patch = body(update.fields)?;
    if patch.as_object().is_none_or(serde_json::Map::is_empty) {
        return Err(Failure::Usage(
            "nothing to change: give --at, --in, --payload, --url or another field".to_owned(),
        ));
    }
    let client = Client::new(&update.server)?;
    let request = Request::patch(Path::timer(&update.partition, &update.id))
        .if_match(update.if_match.as_deref())
        .header("idempotency-key", update.idempotency_key)
        .merge_patch(patch);
    output.row(&client.send(&request)?, COLUMNS)
}

fn cancel(cancel: &CancelTimer, output: &mut Output) -> Result<(), Failure> {
    let GetTimer {
        partition,
        id,
        server,
    } = &cancel.timer;
    let client = Client::new(server)?;
    let request = Request::delete(Path::timer(partition, id))
        .query("force", cancel.force.then_some("true"))
        .if_match(cancel.if_match.as_deref());
    client.send(&request)?;
    let document: Value = json!({ "partition": partition, "id": id, "cancelled": true });
    output.done(&format!("cancelled {id}"), &document)
}

fn fire(fire: &GetTimer, output: &mut Output) -> Result<(), Failure> {
    let client = Client::new(&fire.server)?;
    let path = Path::timer(&fire.partition, &fire.id).verb("fire-now");
    output.row(&client.send(&Request::post(path))?, COLUMNS)
}
