/**
 * Merges one part of a Compose file over another, by the rules of the Compose specification. Pure.
 */
import { isBranch, isLeaf, isList, textOf, type Branch, type Leaf, type Path, type Tree } from '../file/tree.ts';

/** Tags of values that are not merged: the first removes the value, the second replaces it. */
export const mergeTags = ['!reset', '!override'] as const;
const [resetTag, overrideTag] = mergeTags;

/**
 * Keys of a service whose later value replaces the earlier one, as does each limit of `ulimits`.
 */
const replaced = ['command', 'entrypoint', 'healthcheck.test'];
/** Keys with a list of `NAME=value`, or a map. */
const keyed = ['environment', 'labels', 'annotations', 'sysctls', 'extra_hosts', 'deploy.labels', 'build.args'];
/** Keys with a list of names, or a map. */
const named = ['depends_on', 'networks', 'models'];
/** Keys with a text, or a list of texts. */
const several = ['env_file', 'label_file', 'dns', 'dns_opt', 'dns_search', 'tmpfs'];

const leaf = ({ place, keyPlace }: Tree, value: unknown): Leaf => ({ place, keyPlace, value });
const branch = ({ place, keyPlace, tag }: Tree, entries: Iterable<readonly [string, Tree]>): Branch => ({
  place,
  keyPlace,
  tag,
  entries: new Map(entries),
});

/** Splits `NAME=value`; extra hosts may have a colon. */
function pairIn(item: Tree, key: string): readonly [string, Tree] {
  const text = textOf(item) ?? '';
  const at = key === 'extra_hosts' ? text.search(/[=:]/) : text.indexOf('=');
  return at < 0 ? [text, leaf(item, null)] : [text.slice(0, at), leaf(item, text.slice(at + 1))];
}

/** The long form of a dependency that is a mere name. */
const alone = (item: Tree): Tree =>
  branch(item, [
    ['condition', leaf(item, 'service_started')],
    ['required', leaf(item, true)],
  ]);

/** A value in the long form of its key. */
function shaped(tree: Tree, key: string): Tree {
  const { place, keyPlace, tag } = tree;
  const isText = isLeaf(tree) && tree.value !== null;
  if ((isText || isBranch(tree)) && several.includes(key)) return { place, keyPlace, tag, items: [tree] };
  if (isText && key === 'build') return branch(tree, [['context', tree]]);
  // A tree of an unknown form stays unchanged; later checks report it as a fault.
  if (!isList(tree) || !tree.items.every(isLeaf)) return tree;
  if (keyed.includes(key))
    return branch(
      tree,
      tree.items.map((item) => pairIn(item, key)),
    );
  if (!named.includes(key)) return tree;
  return branch(
    tree,
    tree.items.map((item) => [pairIn(item, key)[0], key === 'depends_on' ? alone(item) : leaf(item, null)]),
  );
}

/**
 * @param path of both
 * @param clash is called with what can't be merged: one is a list or a map, the other is none
 */
export function merged(base: Tree, over: Tree, path: Path, clash: (over: Tree, path: Path) => void): Tree {
  if (over.tag === resetTag || over.tag === overrideTag || base.tag === resetTag) return over;
  const key = path[0] === 'services' ? path.slice(2).join('.') : '';
  if (replaced.includes(key) || key.startsWith('ulimits.')) return over;
  if (isLeaf(over) && over.value === null) return base;
  const one = shaped(base, key);
  const other = shaped(over, key);
  if (isList(one) && isList(other)) return { ...other, items: [...one.items, ...other.items] };
  if (isBranch(one) && isBranch(other)) {
    const entries = new Map(one.entries);
    for (const [name, value] of other.entries) {
      const before = keyed.includes(key) ? undefined : entries.get(name);
      entries.set(name, before === undefined ? value : merged(before, value, [...path, name], clash));
    }
    return { ...other, entries };
  }
  if (!isLeaf(one)) clash(over, path);
  return over;
}

/**
 * Removes merge tags and the values that they remove. Returns the same tree if it has none.
 * @param known results of earlier calls
 */
export function settled(tree: Tree, known = new Map<Tree, Tree>()): Tree {
  const found = known.get(tree);
  if (found !== undefined) return found;
  const isLeft = (one: Tree): boolean => one.tag !== resetTag;
  const isSame = (after: readonly Tree[], before: readonly Tree[]): boolean =>
    tree.tag === undefined && after.length === before.length && after.every((one, at) => one === before[at]);
  let result: Tree = isLeaf(tree) && tree.tag !== undefined ? leaf(tree, tree.value) : tree;
  if (isList(tree)) {
    const items = tree.items.filter(isLeft).map((item) => settled(item, known));
    if (!isSame(items, tree.items)) result = { ...tree, tag: undefined, items };
  } else if (isBranch(tree)) {
    const left = [...tree.entries].filter(([, value]) => isLeft(value));
    const entries = new Map(left.map(([name, value]) => [name, settled(value, known)]));
    if (!isSame([...entries.values()], [...tree.entries.values()])) result = { ...tree, tag: undefined, entries };
  }
  known.set(tree, result);
  return result;
}
