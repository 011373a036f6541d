//! A blog whose posts appear with everything they show: an image and a translation that lie in other
//! partitions, and the word of a moderator.
//!
//! Run it with `cargo run -p dueline-tokio --example release_gate`.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use dueline::BoxFuture;
use dueline::kinds::publication_recheck::{
    Dependency, Gate, Gated, GatedRecord, PublicationRecheck, Rechecks,
};
use dueline::store::{Batch, Key, Partition, Value};
use dueline::timers::{Engine, HandlerError, Registry, TimerCtx, Timers};
use dueline_sqlite::{Options, SqliteStore};
use dueline_tokio::{Driver, DriverStore, system_runtime};

/// A draft names what it shows, a line each: partition, blank, key.
struct Blog;

/// Where the moderator's word on a draft is.
fn moderation(draft: &Key) -> Key {
    [b"moderation/", draft.as_ref()].concat().into()
}

impl Gate for Blog {
    fn state_keys(&self, draft: &Key) -> Vec<Key> {
        vec![moderation(draft)]
    }

    fn gated(&self, draft: &GatedRecord) -> Result<Option<Gated>, HandlerError> {
        let text = std::str::from_utf8(&draft.value)?;
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let shown = lines.map(|(partition, key)| {
            Ok(Dependency {
                partition: Partition::new(partition.to_owned())?,
                key: Key::from(key.to_owned()),
            })
        });
        let word = draft.state.first().and_then(|(_, row)| row.clone());
        Ok(Some(Gated {
            generation: 0,
            obligations: word.clone().unwrap_or_default(),
            is_obliged: word.is_none(),
            dependencies: shown.collect::<Result<_, HandlerError>>()?,
        }))
    }

    fn is_visible(&self, _: &Dependency, row: Option<&Value>) -> bool {
        row.is_some_and(|row| row == "visible")
    }

    fn release<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        draft: &'a GatedRecord,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>> {
        let post = [b"post/", draft.key.as_ref()].concat();
        let batch = Batch::new()
            .delete(draft.key.clone())
            .delete(moderation(&draft.key))
            .put(post, draft.value.clone());
        Box::pin(async move { Ok(batch) })
    }
}

/// The whole story, told to `out`.
pub(crate) async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = system_runtime()?;
    let options = Options::new(Arc::clone(runtime.clock()));
    let sqlite = SqliteStore::open(folder.path().join("blog.db"), options)?;
    let store = DriverStore::new(Arc::new(sqlite));

    // The gate reads other partitions of the file.
    let timers = Timers::new(store.to_store(), runtime.clone());
    let (kind, registration) = PublicationRecheck::new(Blog, timers).entry();
    let engine = Engine::new(
        store.to_store(),
        runtime,
        Registry::new().with(kind, registration)?,
    );
    let driver = Driver::builder(engine, store).start()?;
    let store = Arc::clone(driver.timers().store());
    let rechecks = Rechecks::new(driver.timers().clone());
    let partition = |name: &'static str| Partition::new(name);
    let (blog, images, french) = (partition("blog")?, partition("images")?, partition("fr")?);

    // The draft and the looks at it are one batch.
    let draft = Key::from("hello");
    let looks = rechecks.plan_new(&draft)?;
    let text = "images cat.png\nfr hello\n";
    let batch = Batch::new().put(draft.clone(), text).append(looks.batch);
    writeln!(
        out,
        "draft: {}",
        store.apply(&blog, batch).await?.is_committed()
    )?;

    // Everything it waits for comes, in any order.
    let post = Key::from("post/hello");
    for (what, where_to, row, value) in [
        ("the moderator agrees", &blog, moderation(&draft), "fine"),
        (
            "the image is there",
            &images,
            Key::from("cat.png"),
            "visible",
        ),
        (
            "the translation is there",
            &french,
            Key::from("hello"),
            "visible",
        ),
    ] {
        assert_eq!(store.get(&blog, &post).await?, None, "not before: {what}");
        let is_written = store.apply(where_to, Batch::new().put(row, value)).await?;
        assert!(is_written.is_committed());
        writeln!(out, "{what}")?;
    }

    // The next look is at most five seconds away; whoever knows better need not wait.
    while store.get(&blog, &post).await?.is_none() {
        rechecks.look_now(&blog, &draft).await?;
        driver
            .timers()
            .runtime()
            .sleep(Duration::from_millis(20))
            .await;
    }
    writeln!(out, "the post is released")?;
    let is_waiting = rechecks.look_now(&blog, &draft).await?;
    writeln!(out, "it waits: {is_waiting}")?;

    driver.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout()).await
}
