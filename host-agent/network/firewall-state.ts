/**
 * - `off`: by the operator. - `waiting`: there is no bridge yet. - `unchecked`: the rules are in
 *   place, and no look from inside a container has shown that they hold. - `enforced`: one has. -
 *   `open`: they are not in place, or do not hold.
 */
export const firewallStates = ['off', 'waiting', 'unchecked', 'enforced', 'open'] as const;
export type FirewallState = (typeof firewallStates)[number];
