// Goal: records of an object are released when all they depend on is visible, and never before, in the commit of
// their writes. Method: an object under a virtual clock, places that are sets of the test's.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { TimerObject, type BuiltIns, type Dependency, type Effects, type Gated, type Look } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

let visible: Set<string> = new Set();
let asked: [place: string, keys: readonly string[]][] = [];
let look = ({ place, keys }: Look): readonly boolean[] | Promise<readonly boolean[]> =>
  keys.map((key) => visible.has(`${place}/${key}`));
let released: (blog: Blog, record: string) => Effects | void | Promise<Effects | void>;

class Blog extends TimerObject<Record<string, never>> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS posts (name TEXT PRIMARY KEY, state TEXT NOT NULL)");
  }
  protected override handlers(): Record<string, never> {
    return {};
  }
  protected override builtIns(): BuiltIns {
    return {
      gated: {
        look: (of) => {
          asked.push([of.place, of.keys]);
          return look(of);
        },
        release: (record) => released(this, record),
      },
    };
  }
  get gated(): Gated {
    return this.timers.gated;
  }
  draft(name: string): Effects {
    return () => void this.ctx.storage.sql.exec("INSERT INTO posts VALUES (?, 'draft')", name);
  }
  publish(name: string): Effects {
    return () => void this.ctx.storage.sql.exec("UPDATE posts SET state = 'out' WHERE name = ?", name);
  }
  counts() {
    return this.timers.counts();
  }
}

let clock: TestClock;
let blog: TestObject<Blog>;
const seen = look;
const state = (name: string): unknown => blog.sql("SELECT state FROM posts WHERE name = ?", name)[0]?.state;
const code = (code: string) => (error: unknown) => (error as { code?: string }).code === code;
const many = (place: string, count: number): Dependency[] =>
  Array.from({ length: count }, (_, index) => ({ place, key: `k${String(index).padStart(4, "0")}` }));

beforeEach(async () => {
  visible = new Set();
  asked = [];
  look = seen;
  released = (object, record) => object.publish(record);
  clock = TestClock.install();
  blog = await TestObject.open(clock, Blog);
});
afterEach(() => clock.uninstall());

describe("a record", () => {
  it("is released with its writes once all is visible, and leaves nothing behind", async () => {
    const { gated } = blog.instance;
    const waitsFor = [
      { place: "images", key: "cat" },
      { place: "fr", key: "hello \u{1f600}" },
    ];
    await gated.add("hello", waitsFor, { effects: blog.instance.draft("hello") });
    assert.deepEqual(await gated.get("hello"), waitsFor);
    await clock.advance(10);
    visible.add("images/cat");
    await clock.advance(10_000);
    assert.equal(state("hello"), "draft");
    visible.add("fr/hello \u{1f600}");
    await clock.advance(5_000);
    assert.equal(state("hello"), "out");
    assert.equal(await gated.get("hello"), undefined);
    assert.deepEqual([await blog.instance.counts(), blog.alarmAt], [[], null]);
    assert.equal(await gated.lookNow("hello"), false);
  });

  it("without dependencies is released at once", async () => {
    await blog.instance.gated.add("hello", [], { effects: blog.instance.draft("hello") });
    await clock.advance(10);
    assert.equal(state("hello"), "out");
  });

  it("is looked at now if somebody knows better", async () => {
    const { gated } = blog.instance;
    await gated.add("hello", [{ place: "images", key: "cat" }], { effects: blog.instance.draft("hello") });
    await clock.advance(1_000);
    visible.add("images/cat");
    assert.equal(await gated.lookNow("hello"), true);
    await clock.advance(10);
    assert.equal(state("hello"), "out");
  });

  it("is asked about eight keys at a time, and about those that were seen no more, over a restart", async () => {
    const { gated } = blog.instance;
    const waitsFor = many("images", 20);
    for (const { key } of waitsFor.slice(0, 12)) {
      visible.add(`images/${key}`);
    }
    await gated.add("hello", waitsFor, { effects: blog.instance.draft("hello") });
    await clock.advance(10);
    assert.deepEqual(asked.map(([, keys]) => keys.length), [8, 8]);
    asked = [];
    await blog.restart();
    await clock.advance(5_000);
    assert.deepEqual(asked.map(([, keys]) => keys[0]), ["k0012"]);
    for (const { key } of waitsFor.slice(12)) {
      visible.add(`images/${key}`);
    }
    await clock.advance(5_000);
    assert.equal(state("hello"), "out");
  });

  it("that is added again waits for what it was given last", async () => {
    const { gated } = blog.instance;
    await gated.add("hello", [{ place: "images", key: "cat" }], { effects: blog.instance.draft("hello") });
    await clock.advance(10);
    await gated.add("hello", [{ place: "images", key: "dog" }]);
    visible.add("images/cat");
    await clock.advance(20_000);
    assert.equal(state("hello"), "draft");
    visible.add("images/dog");
    await clock.advance(5_000);
    assert.equal(state("hello"), "out");
  });

  it("that is removed is not released", async () => {
    const { gated, draft } = blog.instance;
    await gated.add("hello", [{ place: "images", key: "cat" }]);
    await clock.advance(10);
    assert.equal(await gated.remove("hello", { effects: draft.call(blog.instance, "gone") }), true);
    assert.equal(await gated.remove("hello", { effects: draft.call(blog.instance, "never") }), false);
    visible.add("images/cat");
    assert.equal(await gated.lookNow("hello"), false);
    await clock.advance(60_000);
    assert.deepEqual(blog.sql("SELECT * FROM posts"), [{ name: "gone", state: "draft" }]);
    assert.deepEqual(await blog.instance.counts(), []);
  });

  it("that changes while its release is being planned is not released", async () => {
    const { gated } = blog.instance;
    visible.add("images/cat");
    let changed: Promise<void> | undefined;
    released = async (object, record) => {
      changed ??= gated.add("hello", [{ place: "images", key: "dog" }]);
      await changed;
      return object.publish(record);
    };
    await gated.add("hello", [{ place: "images", key: "cat" }], { effects: blog.instance.draft("hello") });
    await clock.advance(20_000);
    assert.equal(state("hello"), "draft");
    assert.deepEqual(await gated.get("hello"), [{ place: "images", key: "dog" }]);
    visible.add("images/dog");
    await clock.advance(5_000);
    assert.equal(state("hello"), "out");
  });
});

describe("what fails", () => {
  it("in a look is tried again", async () => {
    look = () => {
      throw new Error("images are down");
    };
    visible.add("images/cat");
    await blog.instance.gated.add("hello", [{ place: "images", key: "cat" }], { effects: blog.instance.draft("hello") });
    await clock.advance(10);
    const waiting = await blog.instance.counts();
    assert.deepEqual(waiting.map(({ kind, timers }) => [kind, timers]), [["$publication_recheck", 1]]);
    look = seen;
    await clock.advance(10_000);
    assert.equal(state("hello"), "out");
  });

  it("as an answer of another form is tried again, and releases nothing", async () => {
    for (const answer of [undefined, [], [true, true], ["yes"]]) {
      look = () => answer as never;
      await blog.instance.gated.add("hello", [{ place: "images", key: "cat" }]);
      await clock.advance(10);
      assert.notEqual(await blog.instance.gated.get("hello"), undefined);
    }
  });

  it("in a release keeps the record as it was", async () => {
    let times = 0;
    released = (object, record) => () => {
      object.publish(record)();
      times += 1;
      if (times < 3) {
        throw new Error("no");
      }
    };
    await blog.instance.gated.add("hello", [], { effects: blog.instance.draft("hello") });
    await clock.advance(10);
    assert.equal(state("hello"), "draft");
    await clock.advance(60_000);
    assert.deepEqual([state("hello"), times], ["out", 3]);
  });
});

it("a release without writes ends the record", async () => {
  released = () => undefined;
  await blog.instance.gated.add("hello", []);
  await clock.advance(10);
  assert.equal(await blog.instance.gated.get("hello"), undefined);
});

it("8,192 dependencies are walked by 1,024 questions", async () => {
  const waitsFor = many("images", 8_192);
  for (const { key } of waitsFor) {
    visible.add(`images/${key}`);
  }
  await blog.instance.gated.add("hello", waitsFor, { effects: blog.instance.draft("hello") });
  await clock.advance(60_000);
  assert.deepEqual([state("hello"), asked.length], ["out", 1_024]);
});

it("names, places and keys are looked at", async () => {
  const { gated } = blog.instance;
  const one = [{ place: "images", key: "cat" }];
  await assert.rejects(gated.add("", one), code("invalid"));
  await assert.rejects(gated.add("x".repeat(257), one), code("invalid"));
  await assert.rejects(gated.add("x", undefined as never), code("invalid"));
  await assert.rejects(gated.add("x", [undefined as never]), code("invalid"));
  await assert.rejects(gated.add("x", [{ place: "", key: "cat" }]), code("invalid"));
  await assert.rejects(gated.add("x", [{ place: "x".repeat(256), key: "cat" }]), code("invalid"));
  await assert.rejects(gated.add("x", [{ place: "images", key: "x".repeat(513) }]), code("invalid"));
  await assert.rejects(gated.add("x", many("images", 8_193)), code("invalid"));
  await assert.rejects(gated.add("x", many("x".repeat(250), 2_000)), code("payload_too_large"));
  await assert.rejects(gated.remove(7 as never), code("invalid"));
  await gated.add("x".repeat(256), [{ place: "p".repeat(255), key: "k".repeat(512) }]);
  visible.add(`${"p".repeat(255)}/${"k".repeat(512)}`);
  await clock.advance(10);
  assert.equal(await gated.get("x".repeat(256)), undefined);
  class Wrong extends Blog {
    protected override builtIns(): BuiltIns {
      return { gated: { look: () => [] } } as unknown as BuiltIns;
    }
  }
  await assert.rejects(TestObject.open(clock, Wrong), code("invalid"));
  class None extends Blog {
    protected override builtIns(): BuiltIns {
      return {};
    }
  }
  const none = await TestObject.open(clock, None);
  await assert.rejects(none.instance.gated.add("x", one), code("unknown_kind"));
});
