// Both sides in one worker; and the time that the package takes to be loaded.
export { ByHand, ByHandAtLength } from "./by-hand.js";
export { Cold, ColdWithKinds } from "./cold.js";
export { WithDefaults, WithDueline, WithGroups } from "./with-dueline.js";

export default {
  async fetch(request: Request, env: Record<string, DurableObjectNamespace>): Promise<Response> {
    const [, namespace = "", name = ""] = new URL(request.url).pathname.split("/");
    const objects = env[namespace];
    return objects === undefined
      ? new Response("no such namespace", { status: 404 })
      : objects.get(objects.idFromName(name)).fetch(request);
  },
};
