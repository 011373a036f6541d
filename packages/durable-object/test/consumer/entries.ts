// Goal: the declarations of the package compile in a project that checks its libraries and knows no newer JavaScript
// than the platform's oldest programs. Method: each entry, with all that it declares; nothing here is run.
import * as main from "@dueline/durable-object";
import * as kinds from "@dueline/durable-object/kinds";
import * as testing from "@dueline/durable-object/testing";

export class Room extends main.TimerObject<{ close: string }> {
  protected override handlers(): main.Handlers<{ close: string }> {
    return { close: ({ payload }) => main.dead(payload) };
  }
}

export class Office extends kinds.TimerObject<{ close: string }> {
  protected override handlers(): kinds.Handlers<{ close: string }> {
    return { close: () => kinds.done() };
  }
  protected override builtIns(): kinds.BuiltIns {
    return { tickets: {}, leases: {}, gated: { look: ({ keys }) => keys.map(() => true), release: () => undefined } };
  }
}

export async function tested(clock: testing.TestClock): Promise<number | null> {
  const room = await testing.TestObject.open(clock, Room);
  await room.instance.schedule("close", { after: 1, payload: "late" });
  return room.alarmAt;
}
