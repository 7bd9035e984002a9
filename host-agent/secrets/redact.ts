/**
 * Replaces secrets in texts of the engine and of registries, which may repeat them; logs must not.
 * Pure.
 */
export const withoutSecrets = (text: string, values: readonly string[]): string =>
  values.reduce((rest, value) => (value === '' ? rest : rest.replaceAll(value, hidden)), text);

const hidden = '[hidden]';
