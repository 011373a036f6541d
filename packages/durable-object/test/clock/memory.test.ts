// Goal: a wait that is over leaves nothing in the engine's memory, however it ended. Method: the memory of the module is
// seen before its entry is loaded; thousands of runs may not make it grow, once it has what some of them need at a time.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import type { BuiltIns, Handlers, Settings } from "@dueline/durable-object/kinds";
import type { TestClock as Clock } from "@dueline/durable-object/testing";

const instances: WebAssembly.Instance[] = [];
const { Instance } = WebAssembly;
WebAssembly.Instance = new Proxy(Instance, {
  construct(target, given: [WebAssembly.Module, WebAssembly.Imports]): WebAssembly.Instance {
    const made = new target(...given);
    instances.push(made);
    return made;
  },
});
const { detached, TimerObject } = await import("@dueline/durable-object/kinds");
const { TestClock, TestObject } = await import("@dueline/durable-object/testing");

type Kinds = { waits: undefined; fails: undefined; hangs: undefined; calls: undefined; hangsOut: undefined };

const hangs = (): Promise<never> => new Promise(() => undefined);

class Hall extends TimerObject<Kinds> {
  protected override settings(): Settings {
    return { log: false };
  }
  protected override handlers(): Handlers<Kinds> {
    return {
      waits: async () => {
        await Promise.resolve();
      },
      fails: { run: () => Promise.reject(new Error("no")), retry: { attempts: 1 } },
      hangs: { run: hangs, deadline: 50, retry: { attempts: 1 } },
      calls: detached({ call: () => Promise.resolve(), settle: () => undefined }),
      hangsOut: detached({ call: hangs, settle: () => undefined, deadline: 50, retry: { attempts: 1 } }),
    };
  }
  protected override builtIns(): BuiltIns {
    return { tickets: { onClose: hangs, deadline: 50 } };
  }
  get open() {
    return this.timers;
  }
}

let clock: Clock;

beforeEach(() => {
  clock = TestClock.install({ patience: 1 });
});
afterEach(() => clock.uninstall());

/** How much memory the module has, in bytes. */
function bytes(): number {
  const [memory] = instances.map(({ exports }) => exports["memory"] as WebAssembly.Memory);
  assert.ok(memory !== undefined && instances.length === 1);
  return memory.buffer.byteLength;
}

const ROUND = 250;

/** Does this a few thousand times, and looks whether the module needs more memory than for the first few hundred. */
async function keepsNothing(round: () => Promise<unknown>): Promise<void> {
  await round();
  await round();
  const before = bytes();
  for (let turn = 0; turn < 10; turn += 1) {
    await round();
  }
  assert.equal(bytes(), before);
}

for (const kind of ["waits", "fails", "hangs", "calls", "hangsOut"] as const) {
  it(`runs of a handler that ${kind} leave nothing behind`, async () => {
    const { open } = (await TestObject.open(clock, Hall)).instance;
    await keepsNothing(async () => {
      for (let number = 0; number < ROUND; number += 1) {
        await open.schedule(kind, { after: 1 });
      }
      await clock.advance(60_000);
    });
  });
}

it("hooks that verbs gave up leave nothing behind", async () => {
  const { open } = (await TestObject.open(clock, Hall)).instance;
  const opened = await open.tickets.open({ resource: "hall", ttl: 3_600_000 });
  assert.ok(opened.outcome === "new");
  await keepsNothing(async () => {
    const given = Array.from({ length: ROUND }, () => open.tickets.consume(opened.ticket.id).catch(() => undefined));
    await clock.advance(60);
    await Promise.all(given);
  });
});
