// Goal: what a trap of the engine cuts is told so, happens once or not at all, and the next call goes on with a new
// instance. Method: traps while verbs and alarms wait for an answer of the application.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TimerObject, type BuiltIns, type Tickets } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { engine } from "../../dist/kinds/engine.js";
import { coded } from "./venue.js";

let answers: (() => void)[] = [];

class Room extends TimerObject<{ work: undefined }> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS written (text TEXT)");
  }
  protected override handlers() {
    return { work: () => () => this.write("worked") };
  }
  protected override builtIns(): BuiltIns {
    return {
      tickets: {
        onClose: async (_, end) => {
          await new Promise<void>((resolve) => answers.push(resolve));
          return () => this.write(end);
        },
      },
    };
  }
  get open() {
    return this.timers;
  }
  get tickets(): Tickets {
    return this.timers.tickets;
  }
  get storage() {
    return this.ctx.storage;
  }
  write(text: string): void {
    this.ctx.storage.sql.exec("INSERT INTO written VALUES (?)", text);
  }
}

const { error, warn } = console;
let clock: TestClock;
let room: TestObject<Room>;
const written = (): unknown[] => room.sql("SELECT text FROM written").map(({ text }) => text);

/** Breaks the engine under every object, as a trap does. */
function trap(): void {
  assert.throws(() =>
    engine.current.enter(() => {
      throw new Error("unreachable");
    }),
  );
}

async function hold(ttl: number): Promise<string> {
  const opened = await room.instance.tickets.open({ resource: "hall", ttl });
  return opened.outcome === "new" ? opened.ticket.id : "";
}

/** Lets what waits for nothing but promises go on. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

beforeEach(async () => {
  answers = [];
  Object.assign(console, { error: () => undefined, warn: () => undefined });
  clock = TestClock.install();
  room = await TestObject.open(clock, Room);
});
afterEach(() => {
  clock.uninstall();
  Object.assign(console, { error, warn });
});

it("a verb that waits for an answer is cut, and nothing of it is done", async () => {
  const id = await hold(60_000);
  const cut = room.instance.tickets.consume(id, { effects: () => room.instance.write("consumed") });
  const refused = assert.rejects(cut, coded("crashed"));
  await settled();
  assert.equal(answers.length, 1);
  trap();
  await refused;
  answers.forEach((answer) => answer());
  await settled();
  assert.deepEqual(written(), []);
  const again = room.instance.tickets.consume(id, { effects: () => room.instance.write("mine") });
  await settled();
  answers.forEach((answer) => answer());
  assert.equal((await again).outcome, "done");
  assert.deepEqual(written().sort(), ["consumed", "mine"]);
});

it("an alarm that waits for an answer is cut, and the next one does what it left, once", async () => {
  await hold(1_000);
  await room.instance.open.schedule("work", { after: 1_000 });
  const advanced = clock.advance(1_000);
  await settled();
  assert.equal(answers.length, 1);
  trap();
  await advanced;
  answers.forEach((answer) => answer());
  for (let second = 0; second < 30; second += 1) {
    await clock.advance(1_000);
    answers.splice(0).forEach((answer) => answer());
    await settled();
  }
  assert.deepEqual(written().sort(), ["expired", "worked"]);
});

it("a storage that refuses when the timers are opened anew is asked again by the next call", async () => {
  const id = await hold(60_000);
  const { sql } = room.instance.storage;
  const exec = sql.exec.bind(sql);
  trap();
  sql.exec = () => {
    throw new Error("the storage is not there");
  };
  await assert.rejects(room.instance.tickets.get(id));
  await assert.rejects(room.instance.tickets.get(id));
  sql.exec = exec;
  assert.equal((await room.instance.tickets.get(id))?.id, id);
});
