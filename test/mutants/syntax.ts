/**
 * Changes to TypeScript source, found by symbol and by syntax: line breaks, comments and the place
 * in the file do not matter.
 */
import ts from 'typescript';

/**
 * One change. `in` names the symbol: `decide`, `Partition.#write`, `createOwner.take`. The other
 * texts are source code: the node to change, and what replaces it.
 */
export type Change = { readonly in: string } & (
  | /** An expression that becomes `false`. */ { readonly never: string }
  | /** An expression that becomes `true`. */ { readonly always: string }
  | /** A statement, an operand of `&&`, `||` or `??`, or an item of a list that goes. */ { readonly omit: string }
  | /** An expression or a statement that becomes another. */ { readonly replace: string; readonly by: string }
);

/** A change that does not fit its source: update the mutant with the code, or delete it. */
export class DoesNotApply extends Error {}

const endsList: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.CloseParenToken,
  ts.SyntaxKind.CloseBracketToken,
  ts.SyntaxKind.CloseBraceToken,
]);

/** The tokens of a piece of source, without the commas and semicolons that only its layout adds. */
function tokensOf(text: string): string {
  const scanner = ts.createScanner(ts.ScriptTarget.ESNext, true, ts.LanguageVariant.Standard, text);
  const tokens: string[] = [];
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    if (endsList.has(kind) && tokens.at(-1) === ',') tokens.pop();
    tokens.push(scanner.getTokenText());
  }
  while (tokens.at(-1) === ';') tokens.pop();
  return tokens.join(' ');
}

function descendants(node: ts.Node): ts.Node[] {
  const found: ts.Node[] = [];
  const visit = (child: ts.Node): void => {
    found.push(child);
    ts.forEachChild(child, visit);
  };
  ts.forEachChild(node, visit);
  return found;
}

/** The name of a declaration; undefined for other nodes. */
function nameOf(node: ts.Node, source: ts.SourceFile): string | undefined {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  const declares =
    ((ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) && node.body !== undefined) ||
    ts.isClassDeclaration(node) ||
    ts.isVariableDeclaration(node) ||
    ts.isPropertyDeclaration(node) ||
    ts.isPropertyAssignment(node) ||
    ts.isAccessor(node);
  return declares ? node.name?.getText(source) : undefined;
}

function only<T>(found: readonly T[], what: string): T {
  const [first] = found;
  if (first === undefined) throw new DoesNotApply(`there is no ${what}`);
  if (found.length > 1) throw new DoesNotApply(`there is more than one ${what}`);
  return first;
}

/** Finds the declaration of `path`, whose names are nested. */
function symbolNamed(source: ts.SourceFile, path: string): ts.Node {
  let node: ts.Node = source;
  for (const name of path.split('.')) {
    const named = descendants(node).filter((each) => nameOf(each, source) === name);
    node = only(
      named.filter((each) => !named.some((other) => other !== each && contains(other, each))),
      `symbol ${path}`,
    );
  }
  return node;
}

const contains = (outer: ts.Node, inner: ts.Node): boolean => outer.pos <= inner.pos && inner.end <= outer.end;

/** Finds the only node in `symbol` with this source; of nested ones the outermost. */
function nodeWritten(source: ts.SourceFile, symbol: ts.Node, text: string, path: string): ts.Node {
  const wanted = tokensOf(text);
  const [first = ''] = wanted.split(' ', 1);
  const found: ts.Node[] = [];
  for (const node of descendants(symbol)) {
    if (found.some((outer) => contains(outer, node))) continue;
    const written = node.getText(source);
    // Most nodes differ from the start; only the others are worth a scan.
    if (written.startsWith(first) && tokensOf(written) === wanted) found.push(node);
  }
  return only(found, `\`${text}\` in ${path}`);
}

interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const isLogical = (node: ts.Node): node is ts.BinaryExpression =>
  ts.isBinaryExpression(node) &&
  [ts.SyntaxKind.AmpersandAmpersandToken, ts.SyntaxKind.BarBarToken, ts.SyntaxKind.QuestionQuestionToken].includes(
    node.operatorToken.kind,
  );

/** The list of the parent that holds the node. */
function listAround(node: ts.Node): ts.NodeArray<ts.Node> | undefined {
  const { parent } = node;
  if (ts.isArrayLiteralExpression(parent)) return parent.elements;
  if (ts.isObjectLiteralExpression(parent) || ts.isObjectBindingPattern(parent))
    return ts.isObjectLiteralExpression(parent) ? parent.properties : parent.elements;
  if (ts.isCallExpression(parent) || ts.isNewExpression(parent)) return parent.arguments;
  return undefined;
}

function omission(source: ts.SourceFile, node: ts.Node, written: string): Splice {
  const start = node.getStart(source);
  if (ts.isStatement(node)) return { start, end: node.end, text: ';' };
  const { parent } = node;
  if (isLogical(parent)) {
    const kept = parent.left === node ? parent.right : parent.left;
    return { start: parent.getStart(source), end: parent.end, text: kept.getText(source) };
  }
  const list = listAround(node);
  const index = list?.indexOf(node) ?? -1;
  if (list === undefined || index < 0) throw new DoesNotApply(`\`${written}\` can not be left out`);
  const next = list[index + 1];
  if (next !== undefined) return { start, end: next.getStart(source), text: '' };
  return { start: list[index - 1]?.end ?? start, end: node.end, text: '' };
}

function spliceOf(source: ts.SourceFile, change: Change): Splice {
  const symbol = symbolNamed(source, change.in);
  const find = (text: string): ts.Node => nodeWritten(source, symbol, text, change.in);
  if ('omit' in change) return omission(source, find(change.omit), change.omit);
  const [written, text] =
    'never' in change
      ? [change.never, 'false']
      : 'always' in change
        ? [change.always, 'true']
        : [change.replace, change.by];
  const node = find(written);
  const ending = ts.isStatement(node) && !text.endsWith(';') && !text.endsWith('}') ? ';' : '';
  return { start: node.getStart(source), end: node.end, text: text + ending };
}

/** Applies all changes, each found in the original source. */
export function changed(path: string, text: string, changes: readonly Change[]): string {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
  let result = text;
  for (const { start, end, text: by } of changes
    .map((change) => spliceOf(source, change))
    .sort((one, other) => other.start - one.start)) {
    result = result.slice(0, start) + by + result.slice(end);
  }
  return result;
}

/** Compiles without checking types, as `npm run build` does. */
export function compiled(path: string, text: string): string {
  const { outputText, diagnostics = [] } = ts.transpileModule(text, {
    fileName: path,
    reportDiagnostics: true,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
      rewriteRelativeImportExtensions: true,
    },
  });
  const [fault] = diagnostics;
  if (fault !== undefined) {
    throw new DoesNotApply(
      `what it makes is not TypeScript: ${ts.flattenDiagnosticMessageText(fault.messageText, ' ')}`,
    );
  }
  return outputText;
}
