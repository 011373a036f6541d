/** Options of which there are only these: another one is misspelt. */
export function known<T extends object>(what: string, options: T, names: { readonly [K in keyof T]-?: true }): T {
  const other = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (other !== undefined) {
    throw new TypeError(`${what}: there is no option \`${other}\`; there are ${Object.keys(names).join(", ")}`);
  }
  return options;
}
