//! `dueline timer create | get | list | update | cancel | fire`

use std::process::ExitCode;

use serde_json::json;

use super::pages::{self, Walk};
use super::timer_body::TimerBody;
use crate::arguments::{
    CancelTimer, CreateTimer, GetTimer, ListTimers, Timer, TimerVerb, UpdateTimer,
};
use crate::client::{Client, Path, Request};
use crate::failure::Failure;
use crate::output::{Column, Output};

const COLUMNS: &[Column] = &[
    Column {
        heading: "ID",
        cell: |timer| timer.cell("id"),
    },
    Column {
        heading: "DUE",
        cell: |timer| timer.cell("due_at"),
    },
    Column {
        heading: "STATE",
        cell: |timer| timer.cell("state"),
    },
    Column {
        heading: "ATTEMPT",
        cell: |timer| timer.cell("attempt"),
    },
    Column {
        heading: "GENERATION",
        cell: |timer| timer.cell("generation"),
    },
];

pub(crate) fn run(timer: Timer, output: &Output) -> Result<ExitCode, Failure> {
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

fn create(create: CreateTimer, output: &Output) -> Result<(), Failure> {
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
        .json(&TimerBody::of(fields)?)?;
    output.row(&client.send(&request)?, COLUMNS)
}

fn get(get: &GetTimer, output: &Output) -> Result<(), Failure> {
    let client = Client::new(&get.server)?;
    let timer = client.send(&Request::get(Path::timer(&get.partition, &get.id)))?;
    output.fields(&timer)
}

fn list(list: ListTimers, output: &Output) -> Result<(), Failure> {
    let client = Client::new(&list.server)?;
    let mut filter = Vec::new();
    filter.extend(
        list.state
            .map(|state| ("state", state.as_text().to_owned())),
    );
    filter.extend(list.due_before.map(|time| ("due_before", time)));
    filter.extend(list.prefix.map(|prefix| ("prefix", prefix)));
    let walk = Walk {
        path: Path::timers(&list.partition),
        array: "timers",
        limit: list.limit,
        page_token: list.page_token,
        filter,
    };
    pages::show(&client, walk, COLUMNS, "no timers", output)
}

fn update(update: UpdateTimer, output: &Output) -> Result<(), Failure> {
    let patch = TimerBody::of(update.fields)?;
    if patch.is_empty() {
        return Err(Failure::Usage(
            "nothing to change: give --at, --in, --payload, --url or another field".to_owned(),
        ));
    }
    let client = Client::new(&update.server)?;
    let request = Request::patch(Path::timer(&update.partition, &update.id))
        .if_match(update.if_match.as_deref())
        .header("idempotency-key", update.idempotency_key)
        .merge_patch(&patch)?;
    output.row(&client.send(&request)?, COLUMNS)
}

fn cancel(cancel: &CancelTimer, output: &Output) -> Result<(), Failure> {
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
    let document = json!({ "partition": partition, "id": id, "cancelled": true });
    output.done(&format!("cancelled {id}"), &document)
}

fn fire(fire: &GetTimer, output: &Output) -> Result<(), Failure> {
    let client = Client::new(&fire.server)?;
    let path = Path::timer(&fire.partition, &fire.id).verb("fire-now");
    output.row(&client.send(&Request::post(path))?, COLUMNS)
}
