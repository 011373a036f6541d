// Goal: whatever a function of the application throws is a failure of that run or that call, and never breaks the
// engine, which other objects share. Method: everything that the engine asks throws what has no text, once or for
// a while; then everything that was pending is done.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { detached, TimerObject, type BuiltIns, type Handlers } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { ErrorsTold } from "./errors-told.js";

const THROWN: Record<string, () => unknown> = {
  "an error whose message is an object": () => Object.assign(new Error("x"), { message: { code: 1 } }),
  "an error whose message is a symbol": () => Object.assign(new Error("x"), { message: Symbol("x") }),
  "an error without a message": () => Object.assign(new Error("x"), { message: undefined }),
  "an error whose name is an object": () => Object.assign(new Error(""), { name: {} }),
  "an error whose message cannot be read": () =>
    Object.defineProperty(new Error("x"), "message", {
      get() {
        throw new Error("not to be read");
      },
    }),
  "an object without a prototype": () => Object.create(null) as unknown,
  "a symbol": () => Symbol("x"),
  "nothing": () => undefined,
  "a proxy without a prototype": () =>
    new Proxy(
      {},
      {
        getPrototypeOf() {
          throw new Error("not to be asked");
        },
      },
    ),
};

let at = "";
let make: () => unknown = () => undefined;
let asked: string[] = [];

/** The place where something is thrown, if it is this one. */
function here(place: string): void {
  if (place === at) {
    asked.push(place);
    throw make();
  }
}

type Payloads = {
  atOnce: undefined;
  later: undefined;
  withEffects: undefined;
  call: undefined;
};

class Room extends TimerObject<Payloads> {
  get open() {
    return this.timers;
  }
  protected override handlers(): Handlers<Payloads> {
    return {
      atOnce: () => here("a handler"),
      later: async () => {
        await Promise.resolve();
        here("a handler that waits");
      },
      withEffects: () => () => here("effects"),
      call: detached({
        call: async () => {
          await Promise.resolve();
          here("a call");
        },
        settle: () => here("a settle"),
      }),
    };
  }
  protected override builtIns(): BuiltIns {
    return {
      leases: {
        drain: () => {
          here("drain");
          return "drained";
        },
      },
      reservations: {
        onAbandon: () => {
          here("onAbandon");
          return () => here("the effects of onAbandon");
        },
      },
      outboxes: { mail: () => here("a sink") },
      gated: {
        look: ({ keys }) => {
          here("look");
          return keys.map(() => true);
        },
        release: async () => {
          await Promise.resolve();
          here("release");
          return () => here("the effects of release");
        },
      },
      tickets: {
        onClose: () => {
          here("onClose");
          return () => here("the effects of onClose");
        },
        abort: () => here("abort"),
      },
    };
  }
}

const PLACES = [
  ...["a handler", "a handler that waits", "effects", "a call", "a settle", "drain", "onAbandon", "the effects of onAbandon"],
  ...["a sink", "look", "release", "the effects of release", "onClose", "the effects of onClose", "abort"],
];

const { warn } = console;
let errors: ErrorsTold;
let clock: TestClock;
let room: TestObject<Room>;

beforeEach(async () => {
  [at, asked] = ["", []];
  errors = new ErrorsTold();
  console.warn = () => undefined;
  clock = TestClock.install();
  room = await TestObject.open(clock, Room);
});
afterEach(() => {
  clock.uninstall();
  errors.end();
  console.warn = warn;
});

async function left(): Promise<string[]> {
  const counts = await room.instance.open.counts();
  return counts.filter(({ timers, dead }) => timers + dead > 0).map(({ kind }) => kind);
}

for (const [what, thrown] of Object.entries(THROWN)) {
  describe(`${what} that is thrown`, () => {
    beforeEach(() => {
      make = thrown;
    });

    for (const place of PLACES) {
      it(`by ${place} is a failed run`, async () => {
        const { open } = room.instance;
        for (const kind of ["atOnce", "later", "withEffects", "call"] as const) {
          await open.schedule(kind, { after: 1_000 });
        }
        await open.leases.grant("a", { owner: "ann", term: 1_000 });
        await open.reservations.reserve("a", { commitWithin: 1_000 });
        await open.tickets.open({ resource: "r", ttl: 1_000, session: "s" });
        at = place;
        await open.outboxes.append("mail", [{ id: "a" }]);
        await open.gated.add("r", [{ place: "p", key: "k" }]);
        await clock.advance(10_000);
        assert.notEqual(asked.length, 0);
        at = "";
        await clock.advance(600_000);
        assert.deepEqual([errors.traps, await left()], [[], []]);
      });
    }

    it("under a verb is what the verb throws", async () => {
      const { tickets } = room.instance.open;
      const opened = await tickets.open({ resource: "r", ttl: 10_000 });
      const id = opened.outcome === "new" ? opened.ticket.id : "";
      const once = thrown();
      make = () => once;
      for (at of ["onClose", "the effects of onClose", "mine"]) {
        await assert.rejects(tickets.consume(id, { effects: () => here("mine") }), (caught) => caught === once);
      }
      at = "";
      assert.equal((await tickets.consume(id)).outcome, "done");
      assert.deepEqual(errors.traps, []);
    });
  });
}
