// Goal: a record that waits for other objects is released once, when the last of them is ready, whoever was killed
// meanwhile. Method: a real workerd with two albums of images, `kill -9` and a restart while records wait.
import assert from "node:assert/strict";
import { it } from "node:test";
import { Workerd, until } from "./workerd.js";

interface Seen {
  readonly drafts: string[];
  readonly posts: string[];
  readonly looks: { readonly place: string; readonly first: string }[];
}

it("releases each post once, behind the last of its images", async (t) => {
  const workerd = await Workerd.start({ entry: "gated.js", classes: ["Blog", "Images"] });
  t.after(() => workerd.stop());
  const blog = workerd.object("Blog", "news");
  const seen = (isWanted: (seen: Seen) => boolean): Promise<Seen> => until(() => blog.call<Seen>("seen"), isWanted);
  const names = Array.from({ length: 20 }, (_, index) => `post-${index + 10}`);

  await blog.call("show", "cats", "tom");
  for (const name of names) {
    await blog.call("draft", name, "cats/tom", "dogs/rex");
  }
  await seen(({ looks }) => looks.filter(({ place }) => place === "dogs").length >= names.length);
  const before = await blog.call<Seen>("seen");
  assert.deepEqual([before.drafts, before.posts], [names, []]);
  await workerd.kill();
  await workerd.start();

  await blog.call("show", "dogs", "rex");
  assert.equal(await blog.call("lookNow", names[0]), true);
  const first = await seen(({ posts }) => posts.length > 0);
  assert.ok(first.posts.includes(names[0] ?? ""));
  const { drafts, posts, looks } = await seen(({ posts }) => posts.length >= names.length);
  assert.deepEqual([drafts, posts], [[], names]);
  // What was seen before the kill is not asked for again, but for walks that it cut before their commit.
  assert.ok(looks.filter(({ place }) => place === "cats").length <= 2 * names.length);
  assert.equal(await blog.call("lookNow", names[0]), false);
});
