/** Budgets of hosts, tenants and containers in the streams LOGS and EVENTS. */

export const budgets = {
  /**
   * Parts of a stream's limit: above the first, the largest users are trimmed down to the second.
   */
  budgetFrom: 0.75,
  budgetTo: 0.6,
} as const;
