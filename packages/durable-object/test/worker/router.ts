// Requests by their path: `/CLASS/NAME` goes to the object of that name.
export const router = {
  async fetch(request: Request, env: Record<string, DurableObjectNamespace>): Promise<Response> {
    const [, namespace = "", name = ""] = new URL(request.url).pathname.split("/");
    const objects = env[namespace];
    if (objects === undefined) {
      return new Response("no such namespace", { status: 404 });
    }
    return objects.get(objects.idFromName(name)).fetch(request);
  },
};
