/** The names of Compose files, in the order in which Compose looks for them. */
export const composeFiles = ['compose.yaml', 'compose.yml', 'docker-compose.yml', 'docker-compose.yaml'] as const;
