// An object whose verbs are called over RPC with whatever a caller has, and what became of each call.
import { TimerObject, type BuiltIns } from "@dueline/durable-object/kinds";

const WRONG: Record<string, () => unknown> = {
  "a function": () => () => undefined,
  "an async function": () => async () => undefined,
  "a list with a hole": () => new Array(2),
  "a cycle": () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    return cycle;
  },
  "a bigint": () => 2n ** 64n,
  "no number": () => Number.NaN,
  "nothing": () => null,
  "bytes": () => new Uint8Array(3),
  "a map": () => new Map([["a", 1]]),
  "half of a pair": () => "\ud800",
};

export class Room extends TimerObject<{ close: undefined }> {
  protected override handlers() {
    return { close: () => undefined };
  }

  protected override builtIns(): BuiltIns {
    return { leases: {}, outboxes: { mail: () => undefined }, quotas: { calls: { window: 60_000 } }, tickets: {} };
  }

  grant(name: string, options: never): Promise<unknown> {
    return this.timers.leases.grant(name, options);
  }
  open(request: never): Promise<unknown> {
    return this.timers.tickets.open(request);
  }
  charge(amounts: never): Promise<unknown> {
    return this.timers.quotas.charge("calls", amounts);
  }
  append(outcomes: never): Promise<unknown> {
    return this.timers.outboxes.append("mail", outcomes);
  }
  hold(options: never): Promise<unknown> {
    return this.timers.pause("close", options);
  }
}

type Call = (room: DurableObjectStub<Room>, wrong: never) => Promise<unknown>;

const CALLS: Record<string, Call> = {
  "the effects of a grant": (room, effects) => room.grant("a", { owner: "ann", term: 1e6, effects } as never),
  "the term of a grant": (room, term) => room.grant("a", { owner: "ann", term } as never),
  "the options of a grant": (room, options) => room.grant("a", options),
  "the request of a ticket": (room, request) => room.open(request),
  "the data of a ticket": (room, data) => room.open({ resource: "r", ttl: 1_000, data } as never),
  "amounts": (room, amounts) => room.charge(amounts),
  "outcomes": (room, outcomes) => room.append(outcomes),
  "the options of a pause": (room, options) => room.hold(options),
  "the wait of a pause": (room, wait) => room.hold({ wait } as never),
};

export default {
  async fetch(_: Request, env: { readonly Room: DurableObjectNamespace<Room> }): Promise<Response> {
    const room = env.Room.get(env.Room.idFromName("room"));
    const said: Record<string, string> = {};
    for (const [what, call] of Object.entries(CALLS)) {
      for (const [name, make] of Object.entries(WRONG)) {
        try {
          await call(room, make() as never);
          said[`${what}: ${name}`] = "done";
        } catch (thrown) {
          said[`${what}: ${name}`] = (thrown as Error).message;
        }
      }
    }
    const sound = await room.grant("sound", { owner: "ann", term: 1_000 } as never);
    return Response.json({ value: { said, sound } });
  },
};
