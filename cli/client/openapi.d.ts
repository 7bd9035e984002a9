/**
 * Types of every route, body and answer of the API. Generated from the OpenAPI document: run
 * `npm run docs` in place of editing it.
 */
export interface paths {
  '/api/v2/compute': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the caller’s containers, newest first.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_list'];
    put?: never;
    /**
     * Create a container, which is then placed and started.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    post: operations['container_create'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/containers': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the caller’s containers with labels and project, newest first. Several of one filter are alternatives, and different ones must all hold.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_overview'];
    put?: never;
    /**
     * Create a container from its document: all that is declared of it, in one write.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    post: operations['spec_create'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/containers/watch': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Follow the caller’s containers as Server-Sent Events: all with their status, and then each that changes, without a gap. The filters are those of the list; one that ceases to match is `removed`.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_watch'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/containers/{id}/spec': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the document of a container: all that is declared of it.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['spec_get'];
    /**
     * Replace the document: one write, one generation, one update. An absent part is its default; absent `desired` and `host_key` stay. With `If-Match`, only if it is still as the ETag says.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    put: operations['spec_put'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /**
     * Change the document by a JSON merge patch (RFC 7396), likewise: null is the default of a part.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    patch: operations['spec_patch'];
    trace?: never;
  };
  '/api/v2/compute/quota': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get quota usage.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['tenant_quota'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/hosts': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the hosts of the caller’s regions, by key; `host_key` may name them.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['tenant_hosts'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/network': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the network that the caller’s containers reach each other in.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['tenant_network'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/network/names': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the names in the network of the caller’s containers, in their order.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['tenant_names'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/usage': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the usage of each container, in whole UTC hours of the last 90 days.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['usage_get'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/events': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the events of the caller’s containers, oldest first. They are kept for seven days.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['event_list'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/events/stream': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Stream the events of the caller’s containers as Server-Sent Events: the newest, and then each that comes.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['event_stream'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/logs': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the newest log lines of several containers, at most 50, oldest first; the filters are those of the overview. With a cursor, or a time, those of the seven days before.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['log_list'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/registries': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the caller’s registry logins, without their passwords.
     * @description Scope: read, deploy, admin, operator; or a token without any scope.
     */
    get: operations['registry_list'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/registries/{registry}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    /**
     * Set the login for pulls from this registry. Containers that the registry refused are tried again.
     * @description Scope: admin, operator; or a token without any scope.
     */
    put: operations['registry_put'];
    post?: never;
    /**
     * Remove a login; later pulls from this registry are anonymous.
     * @description Scope: admin, operator; or a token without any scope.
     */
    delete: operations['registry_remove'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/secrets': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the caller’s secrets, without their values.
     * @description Scope: read, deploy, admin, operator; or a token without any scope.
     */
    get: operations['secret_list'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/secrets/{secret}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    /**
     * Set the value of a secret. Another value is a new version, to which the containers that use the secret are updated; the same value changes nothing.
     * @description Scope: admin, operator; or a token without any scope.
     */
    put: operations['secret_put'];
    post?: never;
    /**
     * Remove a secret that no container uses.
     * @description Scope: admin, operator; or a token without any scope.
     */
    delete: operations['secret_remove'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a container. Its ETag changes with the declaration, not with the status.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_get'];
    put?: never;
    post?: never;
    /**
     * Stop and remove the container; its logs and events stay readable for seven days.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    delete: operations['container_delete'];
    options?: never;
    head?: never;
    /**
     * Change what the container is made from (JSON merge patch). The old one runs until the new one is made, and runs again if that fails: see `update` in its status. With `If-Match`, only if it is still declared as the ETag says.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    patch: operations['container_update'];
    trace?: never;
  };
  '/api/v2/compute/{id}/status': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the desired and observed state, with reason, retries and addresses.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_status'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/versions': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List what the container declared, newest first: the last ten versions, or fewer where they differ in much. A secret is named, never shown.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_versions'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/rollback': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Declare again what a version declared, as a new version. Host, labels, project and desired state stay. With `If-Match`, only if it is still as the ETag says.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    post: operations['container_rollback'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/labels': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the labels of a container.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['labels_get'];
    /**
     * Replace the labels. They change nothing that runs, and no generation.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    put: operations['labels_put'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /**
     * Set and remove single labels by a JSON merge patch; null removes one.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    patch: operations['labels_patch'];
    trace?: never;
  };
  '/api/v2/compute/{id}/project': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the project of a container: the file of `longshore apply` that made it.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['project_get'];
    /**
     * Set the project of a container, or none. That changes nothing that runs.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    put: operations['project_put'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/policy': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the policy: how the container is restarted, stopped and checked.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['policy_get'];
    /**
     * Replace the policy; absent fields have their defaults. Only another `command` or `none` of a health check makes the container again, as an update does.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    put: operations['policy_put'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/secrets': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the secrets that the container uses, by variable and by file.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_secrets'];
    /**
     * Replace the secrets that the container uses, as environment variables and as files on tmpfs. This is an update.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    put: operations['container_secrets_put'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/logs': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the newest log lines, oldest first; with a cursor, or a time, those of the seven days before.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_logs'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/logs/stream': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Stream log lines as Server-Sent Events: the newest, and then each that comes.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_logs_stream'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/events': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the events of a container, oldest first.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_events'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/events/stream': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Stream the events of a container as Server-Sent Events: the newest, and then each that comes.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_events_stream'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/stats': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the CPU, memory, network and processes in use. With `follow=true`, once a second.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_stats'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/stats/stream': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Stream what is in use as Server-Sent Events, once a second.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_stats_stream'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/exec': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Run a process in the container, over a WebSocket with the subprotocol `longshore.exec.v1`.
     * @description Scope: exec, operator; or a token without any scope.
     */
    get: operations['container_exec'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/forward': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Connect to a TCP port of the container, published or not, over a WebSocket with the subprotocol `longshore.forward.v1`.
     * @description Scope: exec, operator; or a token without any scope.
     */
    get: operations['container_forward'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/runs': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Run a process in the container, as `exec` does, and answer its output when it has ended: for programs without WebSocket. Not known to have ended: 504.
     * @description Scope: exec, operator; or a token without any scope.
     */
    post: operations['container_run'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/wait': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Answers as soon as the container has the status, or with `until` is settled; 504 at the timeout, 409 once the status can not come any more. `removed` waits until it is gone and answers with its last status.
     * @description Scope: read, deploy, operator; or a token without any scope.
     */
    get: operations['container_wait'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/start': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Set the desired state to running; a container that failed or backs off is tried again at once.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    post: operations['container_start'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/compute/{id}/stop': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Set the desired state to stopped.
     * @description Scope: deploy, operator; or a token without any scope.
     */
    post: operations['container_stop'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/tenants': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the tenants that have anything stored, by id.
     * @description Scope: operator:read, operator:tenants, operator.
     */
    get: operations['tenant_list'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/containers': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Containers of all tenants, in an order that stays the same. A page may be short or empty: the list ends where `next_cursor` is absent.
     * @description Scope: operator:read, operator:tenants, operator.
     */
    get: operations['container_find'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/tenants/{tenant}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the regions, caps and allowed registries of a tenant.
     * @description Scope: operator:read, operator:tenants, operator.
     */
    get: operations['tenant_get'];
    /**
     * Set regions, caps and allowed registries. An absent field gets its default.
     * @description Scope: operator:tenants, operator.
     */
    put: operations['tenant_put'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/tenants/{tenant}/revocations': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Revoke one token (`jti`), those of a subject (`sub`), or all tokens of the tenant issued until now.
     * @description Scope: operator:tenants, operator.
     */
    post: operations['tenant_revoke'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/tenants/{tenant}/containers/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a container with its operator-only fields and reconciler state.
     * @description Scope: operator:read, operator:tenants, operator.
     */
    get: operations['container_inspect'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /**
     * Set pull policy, secret references and config files. This is an update.
     * @description Scope: operator:tenants, operator.
     */
    patch: operations['container_operate'];
    trace?: never;
  };
  '/api/v2/operator/audit': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the audit log of all tenants and of operators, newest first.
     * @description Scope: operator:read, operator.
     */
    get: operations['audit_find'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/events/stream': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Stream the events of all tenants as Server-Sent Events: the newest, and then each that comes. An event may come twice, with the same `id` in it.
     * @description Scope: operator:read, operator:tenants, operator.
     */
    get: operations['event_stream_all'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/usage': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the usage of all tenants, in whole UTC hours of the last 90 days, those of tenants that are gone, too. A page may be short: the list ends where `next_cursor` is absent.
     * @description Scope: operator:read, operator:tenants, operator.
     */
    get: operations['usage_find'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/hosts': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List all hosts, by key.
     * @description Scope: operator:read, operator:hosts, operator.
     */
    get: operations['host_list'];
    put?: never;
    /**
     * Create a host and its one-time join token, which is shown only here.
     * @description Scope: operator:hosts, operator.
     */
    post: operations['host_create'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/hosts/{key}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a host, and the progress of its drain.
     * @description Scope: operator:read, operator:hosts, operator.
     */
    get: operations['host_get'];
    put?: never;
    post?: never;
    /**
     * Remove a host that is drained or lost; `force` fences any other. Its containers are placed elsewhere; those that a tenant pinned to it are lost.
     * @description Scope: operator:hosts, operator.
     */
    delete: operations['host_remove'];
    options?: never;
    head?: never;
    /**
     * Cordon, drain, or approve the removal of held orphans.
     * @description Scope: operator:hosts, operator.
     */
    patch: operations['host_update'];
    trace?: never;
  };
  '/api/v2/operator/hosts/{key}/join-token': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Create a new one-time join token, for a host whose agent lost its identity.
     * @description Scope: operator:hosts, operator.
     */
    post: operations['host_join_token'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/hosts/enrol': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Exchange a join token for NATS credentials, once. */
    post: operations['host_enrol'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/hosts/renew': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Exchange a signature of a host’s enrolled key for NATS credentials, after the old ones have expired. */
    post: operations['host_renew'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/keys': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the caller’s API tokens, newest first, without their values.
     * @description Scope: admin, operator; or a token without any scope.
     */
    get: operations['key_list'];
    put?: never;
    /**
     * Create an API token, with no scope that the caller lacks. It is shown only here.
     * @description Scope: admin, operator; or a token without any scope.
     */
    post: operations['key_create'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/keys/{key_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /**
     * Revoke and delete an API token.
     * @description Scope: admin, operator; or a token without any scope.
     */
    delete: operations['key_remove'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/audit': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the caller’s audit log, newest first: writes, refused writes, sign-ins and sessions of the last 90 days.
     * @description Scope: admin, operator; or a token without any scope.
     */
    get: operations['audit_list'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/peers': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the caller’s VPN peers, newest first.
     * @description Scope: read, vpn, operator; or a token without any scope.
     */
    get: operations['peer_list'];
    put?: never;
    /**
     * Create a peer with addresses, keys and a certificate. Its password and tokens are shown only here.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    post: operations['peer_create'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/peers/{peer}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a peer.
     * @description Scope: read, vpn, operator; or a token without any scope.
     */
    get: operations['peer_get'];
    put?: never;
    post?: never;
    /**
     * Delete a peer: its certificates are revoked and its addresses released.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    delete: operations['peer_remove'];
    options?: never;
    head?: never;
    /**
     * Rename, disable or enable a peer; set its expiry, routes or DNS.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    patch: operations['peer_update'];
    trace?: never;
  };
  '/api/forage/peers/{peer}/traffic': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get what a peer sent and got in each UTC hour of the last 90 days, oldest first.
     * @description Scope: read, vpn, operator; or a token without any scope.
     */
    get: operations['peer_traffic'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/peers/{peer}/rotate': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Replace keys, certificate, password and tokens. The new secrets are shown only here.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    post: operations['peer_rotate'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/peers/{peer}/tokens': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Create a download or PAC token, which is shown only here.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    post: operations['peer_token_create'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/peers/{peer}/tokens/{token}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /**
     * Revoke a download or PAC token.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    delete: operations['peer_token_remove'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/peers/{peer}/links': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the one-time links of a peer that are still good, oldest first, without their URLs.
     * @description Scope: read, vpn, operator; or a token without any scope.
     */
    get: operations['peer_link_list'];
    put?: never;
    /**
     * Create a link to the files of a peer that one browser can open, within 24 hours or until `expires_at`, which is at most seven days ahead. Its URL is shown only here.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    post: operations['peer_link_create'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/peers/{peer}/links/{link}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /**
     * Revoke a one-time link, and the download token of who has redeemed it.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    delete: operations['peer_link_remove'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/links/redeem': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Exchange the token of a one-time link for a download token of ten minutes. The first verifier may repeat that until it expires; the refusal of all others does not say why. */
    post: operations['peer_link_redeem'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/p12/{peer}/password': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Replace the password of the PKCS#12 bundle; the new one is shown only here.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    post: operations['peer_password'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/config/{peer}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the WireGuard configuration.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    get: operations['artifact_config'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/config/{peer}/qr': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the WireGuard configuration as a QR code.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    get: operations['artifact_qr'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/profile/{peer}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the settings for built-in IKEv2 clients, as JSON or in the form of a platform.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    get: operations['artifact_profile'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/p12/{peer}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the certificate and key as PKCS#12, encrypted with the password that was shown once.
     * @description Scope: vpn, operator; or a token without any scope.
     */
    get: operations['artifact_p12'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/pac': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Get the proxy auto-config (PAC) file. */
    get: operations['artifact_pac'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/forage/crl/{network}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Get the certificate revocation list of a network, DER. */
    get: operations['crl'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/metrics/forage': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Get the VPN metrics. Needs a bearer token if one is configured. */
    get: operations['forage_metrics'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/networks': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the VPN networks, by name.
     * @description Scope: operator:read, operator:networks, operator.
     */
    get: operations['network_list'];
    put?: never;
    /**
     * Create a VPN network with its certificate authority and the keys of its server.
     * @description Scope: operator:networks, operator.
     */
    post: operations['network_create'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/networks/{network}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a VPN network.
     * @description Scope: operator:read, operator:networks, operator.
     */
    get: operations['network_get'];
    /**
     * Set everything but the name and the pools. An absent field gets its default.
     * @description Scope: operator:networks, operator.
     */
    put: operations['network_put'];
    post?: never;
    /**
     * Delete a VPN network that has no peers.
     * @description Scope: operator:networks, operator.
     */
    delete: operations['network_remove'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/networks/{network}/servers': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the host that serves a VPN network.
     * @description Scope: operator:read, operator:networks, operator.
     */
    get: operations['network_servers_get'];
    /**
     * Let a host serve a VPN network, from now on in the place of any other.
     * @description Scope: operator:networks, operator.
     */
    put: operations['network_servers_put'];
    post?: never;
    /**
     * Let no host serve a VPN network.
     * @description Scope: operator:networks, operator.
     */
    delete: operations['network_servers_remove'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/networks/{network}/wireguard.conf': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * For `wg-quick` on the VPN server, with its private key.
     * @description Scope: network:<name>, operator:networks, operator.
     */
    get: operations['network_wireguard'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/networks/{network}/swanctl.conf': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * For strongSwan on the VPN server.
     * @description Scope: network:<name>, operator:networks, operator.
     */
    get: operations['network_swanctl'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/networks/{network}/nftables.conf': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * For `nft -f` on the VPN server: what the peers of each tenant may reach.
     * @description Scope: network:<name>, operator:networks, operator.
     */
    get: operations['network_nftables'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/networks/{network}/server.pem': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Certificate of the VPN server.
     * @description Scope: network:<name>, operator:networks, operator.
     */
    get: operations['network_server_certificate'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/networks/{network}/server-key.pem': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Private key of the VPN server.
     * @description Scope: network:<name>, operator:networks, operator.
     */
    get: operations['network_server_key'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/networks/{network}/ca.pem': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Certificate of the authority.
     * @description Scope: network:<name>, operator:networks, operator.
     */
    get: operations['network_ca'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/vpn-keys/reseal': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Seal every secret under the current key of the vault; older keys can then be removed.
     * @description Scope: operator:networks, operator.
     */
    post: operations['secret_reseal'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/signing-keys': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the keys that sign the cluster’s own tokens, newest first, without their private parts.
     * @description Scope: operator:read, operator:tenants, operator.
     */
    get: operations['signing_key_list'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/operator/signing-keys/rotate': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Create a signing key, and sign new tokens with it. Tokens of earlier keys stay valid.
     * @description Scope: operator:tenants, operator.
     */
    post: operations['signing_key_rotate'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/.well-known/jwks.json': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Get the public keys of the cluster’s own tokens, as a JSON Web Key Set. */
    get: operations['jwks'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/login': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Sign in: leads to the identity provider. */
    get: operations['login'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/login/callback': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** The way back from the identity provider. */
    get: operations['login_callback'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/login/tenants': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** The page on which one of several tenants is chosen. */
    get: operations['login_tenants'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/login/tenants/{tenant}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Choose the tenant. */
    post: operations['login_choose'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/login/session': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** The page that says who is signed in. */
    get: operations['login_session'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/login/once': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Sign in with a one-time link, where those are allowed. */
    get: operations['login_once'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/login/device': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** The page that says which command line wants to sign in. */
    get: operations['login_device'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/logout': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Sign out: the session of this token ends at every gateway. */
    post: operations['logout'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/sign-in/device': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Begin the sign-in of a command line. The response has a code that the user confirms in a browser. */
    post: operations['sign_in_device'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/sign-in/device/token': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Poll for the token of a sign-in that the user confirms in a browser. */
    post: operations['sign_in_device_token'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v2/openapi.json': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Get this API as an OpenAPI 3.1 document. */
    get: operations['openapi'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/healthz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Check that the process answers. */
    get: operations['healthz'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/readyz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Check that the process can serve requests: NATS answers, keys are loaded, and it is not stopping. */
    get: operations['readyz'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export type webhooks = Record<string, never>;
export interface components {
  schemas: {
    Container: {
      /** Format: uuid */
      id: string;
      tenant_id: string;
      name: string;
      host_key: string | null;
      registry: string;
      repository: string | null;
      tag: string | null;
      digest: string | null;
      pull_policy: components['schemas']['PullPolicy'];
      ports: components['schemas']['Port'][];
      env: components['schemas']['Labels'];
      cpu_limit: string;
      mem_limit: string;
      status: components['schemas']['ContainerStatus'];
      /**
       * Format: date-time
       * @description RFC 3339, UTC, milliseconds.
       */
      inserted_at: string;
      /**
       * Format: date-time
       * @description RFC 3339, UTC, milliseconds.
       */
      updated_at: string;
    };
    ContainerItem: {
      container: components['schemas']['Container'];
      /** @description With `include=status`. */
      status?: components['schemas']['ContainerStatusView'];
      /** @description With `include=spec`; of files, the hashes. */
      spec?: {
        name: string;
        image: {
          registry: string;
          repository: string | null;
          tag: string | null;
          digest: string | null;
        };
        host_key: string | null;
        env: components['schemas']['Labels'];
        ports: components['schemas']['Port'][];
        cpu_limit: string;
        mem_limit: string;
        process: {
          entrypoint?: string[];
          command?: string[];
          user?: string;
          working_dir?: string;
          tmpfs?: components['schemas']['Labels'];
          shm_size?: string;
          init?: boolean;
          read_only?: boolean;
          ulimits?: components['schemas']['Labels'];
        };
        files: {
          [key: string]: {
            /** @description SHA-256 of the content, in hex. */
            sha256: string;
            bytes: number;
            mode: number;
          };
        };
        network: {
          /**
           * @description `tenant`: it is in the network of its tenant. `none`: it is not, and has no name there.
           * @enum {string}
           */
          mode: 'tenant' | 'none';
        };
        policy: components['schemas']['Policy'];
        secrets: components['schemas']['ContainerSecrets'];
        labels: components['schemas']['Labels'];
        project: string | null;
        aliases: string[];
        /** @enum {string} */
        desired: 'running' | 'stopped';
      };
      /** @description With `include=spec`: its ETag, for `If-Match`. */
      etag?: string;
      labels: components['schemas']['Labels'];
      project: string | null;
    };
    ContainerCreate: {
      /** @description Unique in the tenant. */
      name: string;
      /** @description A host in an allocated region. Absent: the platform chooses one. */
      host_key?: string;
      /** @description Default: `"docker.io"`. */
      registry?: string;
      repository?: string;
      /** @description Default: `"latest"`. */
      tag?: string;
      digest?: string;
      ports?: components['schemas']['Port'][];
      env?: {
        [key: string]: string;
      };
      /** @description Default: `"0.5"`. */
      cpu_limit?: string;
      /** @description Default: `"256m"`. */
      mem_limit?: string;
      labels?: components['schemas']['LabelsPut'];
      /** @description The file of `longshore apply` that it is of. */
      project?: string;
    } & {
      [key: string]: unknown;
    };
    ContainerPatch: {
      registry?: string | null;
      repository?: string | null;
      tag?: string | null;
      digest?: string | null;
      ports?: components['schemas']['Port'][] | null;
      env?: {
        [key: string]: string | null;
      } | null;
      cpu_limit?: string | null;
      mem_limit?: string | null;
    };
    ContainerInspection: {
      container: components['schemas']['Container'];
      status: components['schemas']['ContainerStatusView'];
      secret_refs: components['schemas']['SecretRef'][];
      config_files: components['schemas']['ConfigFile'][];
      secrets: components['schemas']['SecretUses'];
      /** @description Internal state of the reconciler; its fields may change with any release. */
      reconciler: {
        [key: string]: unknown;
      };
    };
    /** @enum {string} */
    ContainerStatus:
      | 'pending'
      | 'pulling'
      | 'starting'
      | 'running'
      | 'backoff'
      | 'stopping'
      | 'stopped'
      | 'failed'
      | 'unknown'
      | 'lost'
      | 'removing';
    ContainerStatusView: {
      /** Format: uuid */
      id: string;
      status: components['schemas']['ContainerStatus'];
      /** @enum {string} */
      desired: 'running' | 'stopped' | 'removed';
      generation: number;
      host_key: string | null;
      observed_status: components['schemas']['ContainerStatus'] | null;
      observed_at: string | null;
      reason: components['schemas']['Reason'] | null;
      message: string | null;
      exit_code: number | null;
      restart_count: number;
      next_retry_at: string | null;
      started_at: string | null;
      addresses: components['schemas']['PortAddress'][];
      /** @description Shortest time for which the present run is known to be up. Absent if it is not up, or its host is silent. */
      up_seconds?: number;
      /** @description Newest generation that the host has reported; 0 if none. */
      observed_generation?: number;
      /** @enum {string} */
      restart_policy?: 'always' | 'on_failure' | 'never';
      /** @description In `backoff`: ends, and starts or pulls that failed, in a row. */
      failures?: number;
      /** @description Paths that the image declares as `VOLUME`. An update on the same host keeps their data. */
      volumes?: string[];
      /** @description The image to which its host resolved the tag. Absent until the host has made it, or if it cannot tell. */
      image?: {
        /** @description Digest that its tag named on its host. */
        digest: string;
        /**
         * Format: date-time
         * @description RFC 3339, UTC, milliseconds.
         */
        resolved_at: string;
      };
      network?: {
        ipv4: string | null;
        /** @description Address for its life, also on another host. */
        ipv6: string;
        /** @description Names that lead to it; none where DNS does not allow its name. */
        names: string[];
        /** @enum {string} */
        state: 'ready' | 'unavailable';
        reason: ('not_attached' | 'too_many_members' | 'no_ipv4' | 'made_before_network') | null;
        message: string | null;
      } | null;
      /** @description The newest of `left_on`. Absent if there is none. */
      left?: {
        host_key: string;
        volumes: string[];
        /**
         * Format: date-time
         * @description RFC 3339, UTC, milliseconds.
         */
        left_at: string;
      };
      /** @description Other hosts that have data of the container, newest first. Absent if there are none. */
      left_on?: {
        host_key: string;
        volumes: string[];
        /**
         * Format: date-time
         * @description RFC 3339, UTC, milliseconds.
         */
        left_at: string;
      }[];
      /** @description Move to another host: under way, or the last one that was asked for and failed. */
      move?: {
        host_key: string;
        /**
         * @description The host gets it ready while it runs on; its former host stops it; the host that its tenant asked for could not take it.
         * @enum {string}
         */
        phase: 'preparing' | 'stopping' | 'failed';
        reason: components['schemas']['Reason'] | null;
        /** @description Of the write that asked for it. */
        generation?: number;
      };
      pull?: components['schemas']['PullProgress'];
      update?: components['schemas']['Update'];
      labels?: components['schemas']['Labels'];
      project?: string | null;
    };
    WaitedStatus: {
      /** Format: uuid */
      id: string;
      status: components['schemas']['ContainerStatus'];
      /** @enum {string} */
      desired: 'running' | 'stopped' | 'removed';
      generation: number;
      host_key: string | null;
      observed_status: components['schemas']['ContainerStatus'] | null;
      observed_at: string | null;
      reason: components['schemas']['Reason'] | null;
      message: string | null;
      exit_code: number | null;
      restart_count: number;
      next_retry_at: string | null;
      started_at: string | null;
      addresses: components['schemas']['PortAddress'][];
      /** @description Shortest time for which the present run is known to be up. Absent if it is not up, or its host is silent. */
      up_seconds?: number;
      /** @description Newest generation that the host has reported; 0 if none. */
      observed_generation?: number;
      /** @enum {string} */
      restart_policy?: 'always' | 'on_failure' | 'never';
      /** @description In `backoff`: ends, and starts or pulls that failed, in a row. */
      failures?: number;
      /** @description Paths that the image declares as `VOLUME`. An update on the same host keeps their data. */
      volumes?: string[];
      /** @description The image to which its host resolved the tag. Absent until the host has made it, or if it cannot tell. */
      image?: {
        /** @description Digest that its tag named on its host. */
        digest: string;
        /**
         * Format: date-time
         * @description RFC 3339, UTC, milliseconds.
         */
        resolved_at: string;
      };
      network?: {
        ipv4: string | null;
        /** @description Address for its life, also on another host. */
        ipv6: string;
        /** @description Names that lead to it; none where DNS does not allow its name. */
        names: string[];
        /** @enum {string} */
        state: 'ready' | 'unavailable';
        reason: ('not_attached' | 'too_many_members' | 'no_ipv4' | 'made_before_network') | null;
        message: string | null;
      } | null;
      /** @description The newest of `left_on`. Absent if there is none. */
      left?: {
        host_key: string;
        volumes: string[];
        /**
         * Format: date-time
         * @description RFC 3339, UTC, milliseconds.
         */
        left_at: string;
      };
      /** @description Other hosts that have data of the container, newest first. Absent if there are none. */
      left_on?: {
        host_key: string;
        volumes: string[];
        /**
         * Format: date-time
         * @description RFC 3339, UTC, milliseconds.
         */
        left_at: string;
      }[];
      /** @description Move to another host: under way, or the last one that was asked for and failed. */
      move?: {
        host_key: string;
        /**
         * @description The host gets it ready while it runs on; its former host stops it; the host that its tenant asked for could not take it.
         * @enum {string}
         */
        phase: 'preparing' | 'stopping' | 'failed';
        reason: components['schemas']['Reason'] | null;
        /** @description Of the write that asked for it. */
        generation?: number;
      };
      pull?: components['schemas']['PullProgress'];
      update?: components['schemas']['Update'];
      labels?: components['schemas']['Labels'];
      project?: string | null;
      /**
       * @description Outcome, with `until=settled`.
       * @enum {string}
       */
      outcome?: 'done' | 'rolled_back' | 'failed' | 'stopped' | 'removed' | 'superseded';
    };
    ConfigFile: {
      /** @description Absolute path inside the container. */
      path: string;
      content: string;
      /** @default 292 */
      mode?: number;
    };
    OperatorContainer: {
      container: components['schemas']['Container'];
      status: components['schemas']['ContainerStatusView'];
    };
    OperatorFields: {
      pull_policy?: components['schemas']['PullPolicy'];
      secret_refs?: components['schemas']['SecretRef'][];
      config_files?: components['schemas']['ConfigFile'][];
    };
    Port: number | string;
    PortAddress: {
      /** @description Container port with its protocol: "80/tcp". */
      port: string;
      /** @description Host address and port: "192.0.2.7:32768". */
      address: string;
    };
    /** @enum {string} */
    PullPolicy: 'if_not_present' | 'always' | 'never';
    /** @description Progress of the pull, while the status is `pulling` and the host has reported it. */
    PullProgress: {
      /** @description Layers of the image that the engine has named so far. */
      layers: number;
      /** @description Bytes fetched; layers already on the host are not counted. */
      bytes: number;
      total: number | null;
    };
    /** @enum {string} */
    Reason:
      | 'no_host'
      | 'completed'
      | 'exited'
      | 'crash_loop'
      | 'oom_killed'
      | 'disk_limit'
      | 'image_missing'
      | 'image_not_found'
      | 'image_auth'
      | 'image_pull'
      | 'image_invalid'
      | 'registry_not_allowed'
      | 'image_refused'
      | 'create_failed'
      | 'start_failed'
      | 'secret_missing'
      | 'port_unavailable'
      | 'rejected'
      | 'host_fault'
      | 'engine_unavailable'
      | 'unhealthy'
      | 'host_silent'
      | 'host_lost'
      | 'host_removed';
    SecretRef: {
      env: string;
      /** @description Name of a file in the secrets folder of the hosts. */
      secret: string;
    };
    /** @description Newest update; absent if there was none. */
    Update: {
      /** @enum {string} */
      phase: 'preparing' | 'verifying' | 'done' | 'rolled_back' | 'failed' | 'stopped';
      /** @description Generation that the update created. */
      generation: number;
      /** @description Newest generation whose outcome is that of the update: what came while it was under way. */
      last_generation: number;
      /** @description Changed fields, before the update. */
      from: components['schemas']['UpdatedFields'];
      /** @description Changed fields, after the update. */
      to: components['schemas']['UpdatedFields'];
      reason: components['schemas']['Reason'] | null;
      message: string | null;
      /**
       * Format: date-time
       * @description RFC 3339, UTC, milliseconds.
       */
      at: string;
      /** @description Progress of the pull, while the update is preparing and the host has reported it. */
      pull?: components['schemas']['PullProgress'];
      /**
       * @description With `pull=always`: the tag names the image that ran already, and nothing was replaced.
       * @constant
       */
      unmoved?: true;
    };
    UpdatedFields: {
      registry?: string;
      repository?: string | null;
      tag?: string | null;
      digest?: string | null;
      ports?: components['schemas']['Port'][];
      env?: components['schemas']['Labels'];
      cpu_limit?: string;
      mem_limit?: string;
      process?: {
        entrypoint?: string[];
        command?: string[];
        user?: string;
        working_dir?: string;
        tmpfs?: components['schemas']['Labels'];
        shm_size?: string;
        init?: boolean;
        read_only?: boolean;
        ulimits?: components['schemas']['Labels'];
      };
      files?: {
        [key: string]: {
          /** @description SHA-256 of the content, in hex. */
          sha256: string;
          bytes: number;
          mode: number;
        };
      };
      network?: {
        /**
         * @description `tenant`: it is in the network of its tenant. `none`: it is not, and has no name there.
         * @enum {string}
         */
        mode: 'tenant' | 'none';
      };
      health?: (components['schemas']['HealthCheck'] | components['schemas']['NoCheck']) | null;
      secrets?: components['schemas']['SecretUses'];
    };
    ContainerSpec: {
      name: string;
      image: {
        registry: string;
        repository: string | null;
        tag: string | null;
        digest: string | null;
      };
      host_key: string | null;
      env: components['schemas']['Labels'];
      ports: components['schemas']['Port'][];
      cpu_limit: string;
      mem_limit: string;
      process: {
        entrypoint?: string[];
        command?: string[];
        user?: string;
        working_dir?: string;
        tmpfs?: components['schemas']['Labels'];
        shm_size?: string;
        init?: boolean;
        read_only?: boolean;
        ulimits?: components['schemas']['Labels'];
      };
      files: {
        [key: string]: {
          content: string;
          mode: number;
        };
      };
      network: {
        /**
         * @description `tenant`: it is in the network of its tenant. `none`: it is not, and has no name there.
         * @enum {string}
         */
        mode: 'tenant' | 'none';
      };
      policy: components['schemas']['Policy'];
      secrets: components['schemas']['ContainerSecrets'];
      labels: components['schemas']['Labels'];
      project: string | null;
      aliases: string[];
      /** @enum {string} */
      desired: 'running' | 'stopped';
    };
    /** @description A merge patch of the document. */
    ContainerSpecPatch: {
      [key: string]: unknown;
    };
    /** @description With `dry_run=true`: `data` is the document as it would be. */
    ContainerSpecPlan: {
      /**
       * @description `replace`: another container takes the place of the one that runs, as an update does. `change`: what runs stays.
       * @enum {string}
       */
      action: 'create' | 'replace' | 'change' | 'none';
      /** @description Parts of the document that would have another value. */
      changed: string[];
      /** @description The container would leave its host, and start on another one. Absent if it stays. */
      move?: {
        from: string;
        to: string;
        /** @description Paths whose data stays on the host that it leaves. */
        volumes: string[];
      };
    };
    ContainerSpecPut: {
      /** @description Unique in the tenant. */
      name: string;
      image?: {
        registry?: string | null;
        repository?: string | null;
        tag?: string | null;
        digest?: string | null;
      } | null;
      host_key?: string | null;
      env?: {
        [key: string]: string;
      } | null;
      ports?: components['schemas']['Port'][] | null;
      cpu_limit?: string | null;
      mem_limit?: string | null;
      process?: {
        entrypoint?: string[] | null;
        command?: string[] | null;
        user?: string | null;
        working_dir?: string | null;
        tmpfs?: {
          [key: string]: string;
        } | null;
        shm_size?: string | null;
        init?: boolean | null;
        read_only?: boolean | null;
        ulimits?: {
          [key: string]: string;
        } | null;
      } | null;
      files?: {
        [key: string]: {
          /** @description Text, up to 64 KiB. */
          content: string;
          /** @description File mode, decimal. Absent: 292 (0444). */
          mode?: number;
        };
      } | null;
      network?: {
        mode?: ('tenant' | 'none') | null;
      } | null;
      policy?: components['schemas']['PolicyPut'] | null;
      secrets?: components['schemas']['ContainerSecretsPut'] | null;
      labels?: components['schemas']['LabelsPut'] | null;
      project?: string | null;
      aliases?: string[] | null;
      desired?: ('running' | 'stopped') | null;
    };
    /** @description One of `command`, `http` and `tcp`. */
    HealthCheck: {
      /** @description Program in the container, with its arguments; exit code 0 means healthy. */
      command?: string[];
      /** @description A GET to that port of the container; an answer of 200 to 399 says healthy. */
      http?: {
        port: number;
        /** @default / */
        path: string;
      };
      /** @description A connection to that port of the container; that it opens says healthy. */
      tcp?: {
        port: number;
      };
      /**
       * @description Seconds between two checks.
       * @default 10
       */
      interval: number;
      /**
       * @description Time-out of one check, in seconds.
       * @default 5
       */
      timeout: number;
      /**
       * @description Consecutive failures before the container is unhealthy.
       * @default 3
       */
      retries: number;
      /**
       * @description Grace period after a start, in seconds: failed checks in it do not count.
       * @default 10
       */
      start_period: number;
      /**
       * @description If true, an unhealthy container is restarted.
       * @default false
       */
      restart_unhealthy: boolean;
    };
    NoCheck: {
      /**
       * @description Disables health checks, also that of the image.
       * @constant
       */
      none: true;
    };
    Policy: {
      /** @enum {string} */
      restart: 'always' | 'on_failure' | 'never';
      /** @description Seconds between the stop signal and SIGKILL. */
      stop_grace_seconds: number;
      /**
       * @description Signal sent to stop the container. With SIGTERM, the stop signal that its image names, if it names one.
       * @enum {string}
       */
      stop_signal:
        | 'SIGTERM'
        | 'SIGINT'
        | 'SIGQUIT'
        | 'SIGHUP'
        | 'SIGUSR1'
        | 'SIGUSR2'
        | 'SIGWINCH'
        | 'SIGABRT'
        | 'SIGKILL'
        | 'SIGRTMIN+3';
      health: (components['schemas']['HealthCheck'] | components['schemas']['NoCheck']) | null;
      remove_after_seconds: number | null;
    };
    PolicyPut: {
      /**
       * @description Default: `"always"`.
       * @enum {string}
       */
      restart?: 'always' | 'on_failure' | 'never';
      /** @description Seconds between the stop signal and SIGKILL. Default: `10`. */
      stop_grace_seconds?: number;
      /**
       * @description Signal sent to stop the container. With SIGTERM, the stop signal that its image names, if it names one. Default: `"SIGTERM"`.
       * @enum {string}
       */
      stop_signal?:
        | 'SIGTERM'
        | 'SIGINT'
        | 'SIGQUIT'
        | 'SIGHUP'
        | 'SIGUSR1'
        | 'SIGUSR2'
        | 'SIGWINCH'
        | 'SIGABRT'
        | 'SIGKILL'
        | 'SIGRTMIN+3';
      health?: {
        /** @description Program in the container, with its arguments; exit code 0 means healthy. */
        command?: string[];
        /** @description A GET to that port of the container; an answer of 200 to 399 says healthy. */
        http?: {
          port: number;
          /** @description Default: `"/"`. */
          path?: string;
        };
        /** @description A connection to that port of the container; that it opens says healthy. */
        tcp?: {
          port: number;
        };
        /** @description Seconds between two checks. Default: `10`. */
        interval?: number;
        /** @description Time-out of one check, in seconds. Default: `5`. */
        timeout?: number;
        /** @description Consecutive failures before the container is unhealthy. Default: `3`. */
        retries?: number;
        /** @description Grace period after a start, in seconds: failed checks in it do not count. Default: `10`. */
        start_period?: number;
        /** @description If true, an unhealthy container is restarted. Default: `false`. */
        restart_unhealthy?: boolean;
        /**
         * @description Disables health checks, also that of the image.
         * @constant
         */
        none?: true;
      } | null;
      remove_after_seconds?: number | null;
    };
    ContainerSecrets: {
      env: {
        [key: string]: string;
      };
      files: {
        [key: string]: {
          secret: string;
          mode: number;
          uid: number;
          gid: number;
        };
      };
    };
    ContainerSecretsPut: {
      /** @description Secret for each environment variable. */
      env?: {
        [key: string]: string;
      };
      /** @description By absolute path in the container, not below /proc, /sys or /dev. */
      files?: {
        [key: string]: {
          secret: string;
          /** @description File mode, decimal (256 = 0400). Default: `256`. */
          mode?: number;
          /** @description Default: `0`. */
          uid?: number;
          /** @description Default: `0`. */
          gid?: number;
        };
      };
    };
    RegistryLogin: {
      /** @description Registry in lower case; `docker.io` is Docker Hub. */
      host: string;
      username: string | null;
      updated_at: string | null;
    };
    RegistryLoginPut: {
      /** @description User name, without control characters and colons. */
      username: string;
      /** @description Or a token. */
      password: string;
    };
    Secret: {
      name: string;
      version: number;
      updated_at: string | null;
      /** @description Containers that use it, up to 100. */
      used_by: string[];
      /**
       * @description Containers come to this value with their next start or update.
       * @constant
       */
      staged?: true;
      /** @description Those with an earlier value that come to this one with their next start or update alone, up to 100: all with `staged`, else those whose policy `never` lets no run be broken off. */
      behind?: string[];
    };
    SecretPut: {
      /** @description Text, or base64 with `encoding`; up to 64 KiB. */
      value: string;
      /**
       * @description If absent, the value is text.
       * @enum {string}
       */
      encoding?: 'base64';
    };
    SecretUses: {
      env: {
        [key: string]: {
          name: string;
          version: number;
        };
      };
      files: {
        [key: string]: {
          name: string;
          version: number;
          mode: number;
          uid: number;
          gid: number;
        };
      };
    };
    /** @description Its `id` is that of the event. */
    EventFrame:
      | {
          /** @description Value of `Last-Event-ID` with which a stream goes on behind this frame. */
          id: string;
          /** @constant */
          event: 'event';
          data: components['schemas']['Event'];
        }
      | {
          /** @constant */
          event: 'reset';
          data: components['schemas']['StreamReset'];
        }
      | {
          /** @constant */
          event: 'end';
          data: components['schemas']['StreamEnd'];
        };
    /** @description Its `id` is `<position>.<event>`, and no event’s own: a position in the stream of all tenants. */
    OperatorEventFrame:
      | {
          /** @description Value of `Last-Event-ID` with which a stream goes on behind this frame. */
          id: string;
          /** @constant */
          event: 'event';
          data: components['schemas']['OperatorEvent'];
        }
      | {
          /** @constant */
          event: 'reset';
          data: components['schemas']['StreamReset'];
        }
      | {
          /** @constant */
          event: 'end';
          data: components['schemas']['StreamEnd'];
        };
    /** @description Its `id` is the `seq` of the line. */
    LogFrame:
      | {
          /** @description Value of `Last-Event-ID` with which a stream goes on behind this frame. */
          id: string;
          /** @constant */
          event: 'log';
          data: components['schemas']['LogEntry'];
        }
      | {
          /** @constant */
          event: 'reset';
          data: components['schemas']['StreamReset'];
        }
      | {
          /** @constant */
          event: 'end';
          data: components['schemas']['StreamEnd'];
        };
    StatsFrame:
      | {
          /** @constant */
          event: 'stats';
          data: components['schemas']['ContainerStats'];
        }
      | {
          /** @constant */
          event: 'end';
          data: components['schemas']['StreamEnd'];
        };
    WatchFrame:
      | {
          /** @description Value of `Last-Event-ID` with which a stream goes on behind this frame. */
          id?: string;
          /** @constant */
          event: 'item';
          data: components['schemas']['ContainerItem'];
        }
      | {
          /** @description Value of `Last-Event-ID` with which a stream goes on behind this frame. */
          id?: string;
          /** @constant */
          event: 'removed';
          data: {
            /** Format: uuid */
            id: string;
          };
        }
      | {
          /** @description Value of `Last-Event-ID` with which a stream goes on behind this frame. */
          id: string;
          /** @constant */
          event: 'synced';
          data: {
            position: string;
          };
        }
      | {
          /** @description Value of `Last-Event-ID` with which a stream goes on behind this frame. */
          id: string;
          /** @constant */
          event: 'heartbeat';
          data: {
            position: string;
          };
        }
      | {
          /** @constant */
          event: 'reset';
          data: components['schemas']['StreamReset'];
        }
      | {
          /** @constant */
          event: 'end';
          data: components['schemas']['StreamEnd'];
        };
    StreamEnd: {
      /** @enum {string} */
      reason: 'done' | 'unauthenticated' | 'stopping';
    };
    StreamReset: {
      /**
       * @description `unknown`: this stream has no such id. `expired`: the frames behind it are no longer kept.
       * @enum {string}
       */
      reason: 'unknown' | 'expired';
      oldest: string | null;
    };
    Run: {
      /** @description As shells count: 127 without such a program, 126 if it cannot be started, 128 and its signal. */
      exit_code: number;
      /** @description Bytes that are no UTF-8 are replaced. */
      stdout: string;
      stderr: string;
      /** @description True if there was more than 1 MiB of output in all; it is left out. */
      truncated: boolean;
    };
    RunCreate: {
      /** @description The program and its arguments. */
      command: string[];
      /** @description Seconds after which the process is ended, and the answer is 504. Default: `30`. */
      timeout?: number;
    };
    Key: {
      /** Format: uuid */
      id: string;
      name: string | null;
      scopes: string[] | null;
      subject: string | null;
      inserted_at: string | null;
      expires_at: string | null;
      /** @description True if a revocation of its subject, or of the whole tenant, refuses its token. */
      revoked: boolean;
    };
    KeyCreate: {
      name: string;
      scopes: string[];
      expires_at?: string | null;
    };
    KeyWithToken: {
      /** Format: uuid */
      id: string;
      name: string | null;
      scopes: string[] | null;
      subject: string | null;
      inserted_at: string | null;
      expires_at: string | null;
      /** @description True if a revocation of its subject, or of the whole tenant, refuses its token. */
      revoked: boolean;
      /** @description The token; it is shown only once. */
      token: string;
    };
    KeySet: {
      keys: {
        /** @constant */
        kty: 'OKP';
        /** @constant */
        crv: 'Ed25519';
        /** @constant */
        alg: 'EdDSA';
        /** @constant */
        use: 'sig';
        kid: string;
        x: string;
      }[];
    };
    SigningKey: {
      /** @description `kid` of the tokens that this key signs. */
      id: string;
      /** @description True for the key that signs new tokens. */
      current: boolean;
      inserted_at: string | null;
      expires_at: string | null;
    };
    DeviceBegin: Record<string, never>;
    DeviceSignIn: {
      /** @description Sealed state of this sign-in. */
      handle: string;
      /** @description Code to enter at `verification_uri`. */
      user_code: string;
      verification_uri: string;
      /** @description Page of this server that names the client, and leads to `verification_uri` with the code filled in. */
      verification_uri_complete?: string;
      /** @description Lifetime of the code in seconds. */
      expires_in: number;
      /** @description Seconds to wait between two requests for the token. */
      interval: number;
    };
    DeviceToken:
      | {
          /** @enum {string} */
          status: 'pending' | 'slow_down' | 'expired' | 'denied';
        }
      | {
          /** @constant */
          status: 'choose';
          tenants: string[];
          /** @description Sealed state of this sign-in. */
          handle: string;
        }
      | {
          /** @constant */
          status: 'done';
          tenant: string;
          token: string;
          /** Format: date-time */
          expires_at: string;
        };
    DeviceTokenAsk: {
      /** @description Sealed state of this sign-in. */
      handle: string;
      tenant?: string;
    };
    AuditAuthor: {
      tenant: string | null;
      subject: string | null;
      token: string | null;
      address: string | null;
    };
    AuditDetail: {
      /** @description Fields with faults, if the outcome is `invalid`. */
      fields?: string[];
      /** @description Scope that the token lacks, if the outcome is `forbidden`. */
      scope?: string;
      /** @description Of `over_quota`: the cap that would be exceeded. */
      dimension?: string;
      session?: {
        /** Format: date-time */
        started_at: string;
        /** @description Bytes received from the client. */
        bytes_in: number;
        /** @description Bytes sent to the client. */
        bytes_out: number;
        exit_code: number | null;
        /** @description Reason for the end of the session. */
        reason: string;
      };
    };
    AuditLine: {
      /** @description `<partition>-<commit>-<index>`: the same line has the same id wherever it is read. */
      id: string;
      /** Format: date-time */
      ts: string;
      /** @description The operation, as in the OpenAPI document, such as `container.create`; or `sign_in`, `sign_out`, `container.exec.ended`, `container.forward.ended`, `container.run.ended`. */
      action: string;
      /** @description `done`, or the code of the refusal, such as `forbidden`. */
      outcome: string;
      tenant: string | null;
      by: components['schemas']['AuditAuthor'];
      request_id: string;
      /** @description Object of the action: the path parameters, and the id of a created object. For `sign_in`, `by` is `browser`, `device` or `link`, and `from` is the address that began the sign-in of a device. */
      target: components['schemas']['Labels'];
      detail: components['schemas']['AuditDetail'] | null;
    };
    Event: {
      /** @description `<partition>-<journal entry>-<index>`: the same event has the same id wherever it is read. */
      id: string;
      /** Format: date-time */
      ts: string;
      /** @enum {string} */
      type:
        | 'created'
        | 'start_requested'
        | 'stop_requested'
        | 'delete_requested'
        | 'operator_changed'
        | 'update_requested'
        | 'updated'
        | 'update_failed'
        | 'policy_changed'
        | 'labels_changed'
        | 'project_changed'
        | 'aliases_changed'
        | 'secrets_changed'
        | 'secret_changed'
        | 'registry_changed'
        | 'placed'
        | 'unplaced'
        | 'status'
        | 'status_unknown'
        | 'status_known'
        | 'removed';
      /** Format: uuid */
      container_id: string;
      name: string;
      generation: number;
      host_key: string | null;
      status: components['schemas']['ContainerStatus'];
      reason: components['schemas']['Reason'] | null;
      message: string | null;
      exit_code: number | null;
      request_id: string | null;
      /** @description Subject that caused the event. Null if a host, a policy or the platform did. */
      by: components['schemas']['AuditAuthor'] | null;
      labels?: components['schemas']['Labels'];
      project?: string | null;
    };
    OperatorEvent: {
      tenant_id: string;
      /** @description `<partition>-<journal entry>-<index>`: the same event has the same id wherever it is read. */
      id: string;
      /** Format: date-time */
      ts: string;
      /** @enum {string} */
      type:
        | 'created'
        | 'start_requested'
        | 'stop_requested'
        | 'delete_requested'
        | 'operator_changed'
        | 'update_requested'
        | 'updated'
        | 'update_failed'
        | 'policy_changed'
        | 'labels_changed'
        | 'project_changed'
        | 'aliases_changed'
        | 'secrets_changed'
        | 'secret_changed'
        | 'registry_changed'
        | 'placed'
        | 'unplaced'
        | 'status'
        | 'status_unknown'
        | 'status_known'
        | 'removed';
      /** Format: uuid */
      container_id: string;
      name: string;
      generation: number;
      host_key: string | null;
      status: components['schemas']['ContainerStatus'];
      reason: components['schemas']['Reason'] | null;
      message: string | null;
      exit_code: number | null;
      request_id: string | null;
      /** @description Subject that caused the event. Null if a host, a policy or the platform did. */
      by: components['schemas']['AuditAuthor'] | null;
    };
    LogEntry: {
      /**
       * Format: date-time
       * @description Time at which the engine read the line.
       */
      ts: string;
      /** @enum {string} */
      stream: 'stdout' | 'stderr';
      /** @description Text of the line, without its newline. A line over 16 KiB is split into several entries. */
      line: string;
      /** @description Position of the line: microseconds since 1970, unique and rising within a container. */
      seq: number;
    };
    ContainerLogEntry: {
      /** Format: uuid */
      container_id: string;
      /** @description Of the container. */
      name: string;
      /**
       * Format: date-time
       * @description Time at which the engine read the line.
       */
      ts: string;
      /** @enum {string} */
      stream: 'stdout' | 'stderr';
      /** @description Text of the line, without its newline. A line over 16 KiB is split into several entries. */
      line: string;
      /** @description Position of the line: microseconds since 1970, unique and rising within a container. */
      seq: number;
    };
    Labels: {
      [key: string]: string;
    };
    /** @description Yours to tell containers apart by; they change nothing that runs. */
    LabelsPut: {
      [key: string]: string;
    };
    LabelsPatch: {
      [key: string]: string | null;
    };
    ContainerVersion: {
      /** @description Counts the versions of this container, from 1. */
      version: number;
      /** @description Generation that came with it. */
      generation: number;
      /**
       * Format: date-time
       * @description RFC 3339, UTC, milliseconds.
       */
      at: string;
      /** @description Author of the declaration. Null if no longer known. */
      by: components['schemas']['AuditAuthor'] | null;
      request_id: string | null;
      outcome: ('done' | 'rolled_back' | 'failed' | 'stopped' | 'superseded') | null;
      reason: components['schemas']['Reason'] | null;
      /** @description Digest that its tag named on its host. Absent if not known. */
      digest?: string;
      /** @description The document of that version, with the hashes of its files; host, labels, project and desired state are those of now. */
      spec: {
        name: string;
        image: {
          registry: string;
          repository: string | null;
          tag: string | null;
          digest: string | null;
        };
        host_key: string | null;
        env: components['schemas']['Labels'];
        ports: components['schemas']['Port'][];
        cpu_limit: string;
        mem_limit: string;
        process: {
          entrypoint?: string[];
          command?: string[];
          user?: string;
          working_dir?: string;
          tmpfs?: components['schemas']['Labels'];
          shm_size?: string;
          init?: boolean;
          read_only?: boolean;
          ulimits?: components['schemas']['Labels'];
        };
        files: {
          [key: string]: {
            /** @description SHA-256 of the content, in hex. */
            sha256: string;
            bytes: number;
            mode: number;
          };
        };
        network: {
          /**
           * @description `tenant`: it is in the network of its tenant. `none`: it is not, and has no name there.
           * @enum {string}
           */
          mode: 'tenant' | 'none';
        };
        policy: components['schemas']['Policy'];
        secrets: components['schemas']['ContainerSecrets'];
        labels: components['schemas']['Labels'];
        project: string | null;
        aliases: string[];
        /** @enum {string} */
        desired: 'running' | 'stopped';
      };
    };
    ContainerRollback: {
      version: number;
    };
    Project: {
      project: string | null;
    };
    ProjectPut: {
      project: string | null;
    };
    ContainerStats: {
      /** @description CPU over the last second, in thousandths of a core, as `cpu_limit` counts it. */
      cpu_millis: number;
      /** @description Memory in use, without file pages that the kernel can drop at once. */
      mem_bytes: number;
      mem_limit: number | null;
      net_rx_bytes: number | null;
      net_tx_bytes: number | null;
      pids: number | null;
      /** @description The time of the sample, by the clock of the host. */
      at: string;
    };
    Usage: {
      /** @description The start of the first hour. */
      from: string;
      /** @description The end of the last hour. */
      to: string;
      total: components['schemas']['UsageAmounts'];
      containers: components['schemas']['ContainerUsage'][];
    };
    UsageAmounts: {
      /** @description Time that containers ran, to the millisecond. */
      container_seconds: number;
      /** @description CPU time of all cores, to the millisecond. */
      cpu_seconds: number;
      /** @description Memory in use × time, as a decimal string, because it may not fit a double. */
      mem_byte_seconds: string;
    };
    ContainerUsage: {
      /** Format: uuid */
      id: string;
      name: string | null;
      /** @description Time that containers ran, to the millisecond. */
      container_seconds: number;
      /** @description CPU time of all cores, to the millisecond. */
      cpu_seconds: number;
      /** @description Memory in use × time, as a decimal string, because it may not fit a double. */
      mem_byte_seconds: string;
      labels?: components['schemas']['Labels'];
      project?: string | null;
    };
    OperatorUsage: {
      /** @description By hour: its start. */
      at?: string;
      tenant_id?: string;
      /** Format: uuid */
      container_id?: string;
      name?: string | null;
      /** @description Time that containers ran, to the millisecond. */
      container_seconds: number;
      /** @description CPU time of all cores, to the millisecond. */
      cpu_seconds: number;
      /** @description Memory in use × time, as a decimal string, because it may not fit a double. */
      mem_byte_seconds: string;
    };
    Caps: {
      containers?: number | null;
      cpu_millis?: number | null;
      mem_bytes?: number | null;
      vpn_peers?: number | null;
      ports?: number | null;
      disk_bytes?: number | null;
      /** @description Containers deleted in an hour. Above this the API answers creates with 429; it never refuses deletes. */
      deletes_per_hour?: number | null;
    };
    Quota: {
      region: string;
      usage: {
        [key: string]: number;
      };
      caps: {
        [key: string]: number | null;
      };
    };
    RegionCaps: {
      containers?: number | null;
      cpu_millis?: number | null;
      mem_bytes?: number | null;
      vpn_peers?: number | null;
      ports?: number | null;
      disk_bytes?: number | null;
    };
    RegistryRules: string[];
    Revocation: {
      /** Format: date-time */
      issued_until: string;
      /** Format: date-time */
      expires_at: string;
    };
    RevocationCreate: {
      jti?: string;
      sub?: string;
      /** @description With `jti`: the `exp` of the token, if known. The revocation ends at that time. */
      exp?: number;
    };
    Tenant: {
      id: string;
      regions: string[];
      caps: {
        [key: string]: number | null;
      };
      region_caps: {
        [key: string]: {
          [key: string]: number | null;
        };
      };
      registries: components['schemas']['RegistryRules'] | null;
      region_registries: {
        [key: string]: components['schemas']['RegistryRules'] | null;
      };
    };
    TenantPut: {
      regions?: string[];
      caps?: components['schemas']['Caps'];
      region_caps?: {
        [key: string]: components['schemas']['RegionCaps'];
      };
      registries?: components['schemas']['RegistryRules'] | null;
      region_registries?: {
        [key: string]: components['schemas']['RegistryRules'] | null;
      };
      /** @description Replace a damaged record; every token of the tenant issued until now is revoked. */
      repair?: boolean;
    };
    TenantSummary: {
      id: string;
      regions: string[] | null;
      caps: {
        [key: string]: number | null;
      } | null;
      /** @description Usage in all regions. */
      usage: {
        [key: string]: number;
      };
    };
    BlockedContainer: {
      tenant_id: string;
      /** Format: uuid */
      id: string;
      /** @enum {string} */
      reason:
        | 'no_host'
        | 'completed'
        | 'exited'
        | 'crash_loop'
        | 'oom_killed'
        | 'disk_limit'
        | 'image_missing'
        | 'image_not_found'
        | 'image_auth'
        | 'image_pull'
        | 'image_invalid'
        | 'registry_not_allowed'
        | 'image_refused'
        | 'create_failed'
        | 'start_failed'
        | 'secret_missing'
        | 'port_unavailable'
        | 'rejected'
        | 'host_fault'
        | 'engine_unavailable'
        | 'unhealthy'
        | 'host_silent'
        | 'host_lost'
        | 'host_removed'
        | 'pinned'
        | 'stopping'
        | 'runs_once';
    };
    Capacity: {
      cpu_millis: number;
      mem_bytes: number;
      containers: number;
    };
    DrainProgress: {
      /** @description Containers that were on the host when the drain began, or came since. */
      total: number;
      /** @description Containers moved off this host. */
      moved: number;
      /** @description Containers still on this host: moving, waiting or blocked. */
      left: number;
      /** @description Containers being prepared on another host, or stopped on this one. */
      moving: number;
      /** @description Those that cannot leave now, and why; 100 at most. */
      blocked: components['schemas']['BlockedContainer'][];
    };
    Host: {
      key: string;
      region: string;
      /** @enum {string} */
      status: 'joining' | 'up' | 'unknown' | 'lost' | 'fenced';
      cordoned: boolean;
      draining: boolean;
      capacity: components['schemas']['Capacity'] | null;
      max_cpu_millis: number | null;
      max_mem_bytes: number | null;
      max_containers: number | null;
      drain_at_once: number | null;
      /** @description If true, the enrolled key gets new credentials even after the old ones have expired. */
      renew_expired: boolean;
      used: components['schemas']['Capacity'] | null;
      free_ports: number | null;
      free_disk_bytes: number | null;
      orphans_held: number;
      /** @description Containers moved off this host whose volumes (`VOLUME` of their images) are still on it. The volumes are removed after 7 days, or with the container. */
      volumes_left: number;
      /** @description Faults that the agent reports; empty if there are none. */
      faults: components['schemas']['HostFault'][];
      agent_version: string | null;
      stops_after_ms: number | null;
      engine: string | null;
      last_heard_at: string | null;
      /** Format: date-time */
      inserted_at: string;
      /** Format: date-time */
      updated_at: string;
    };
    HostCreate: {
      key: string;
      region: string;
    };
    HostDetail: {
      key: string;
      region: string;
      /** @enum {string} */
      status: 'joining' | 'up' | 'unknown' | 'lost' | 'fenced';
      cordoned: boolean;
      draining: boolean;
      capacity: components['schemas']['Capacity'] | null;
      max_cpu_millis: number | null;
      max_mem_bytes: number | null;
      max_containers: number | null;
      drain_at_once: number | null;
      /** @description If true, the enrolled key gets new credentials even after the old ones have expired. */
      renew_expired: boolean;
      used: components['schemas']['Capacity'] | null;
      free_ports: number | null;
      free_disk_bytes: number | null;
      orphans_held: number;
      /** @description Containers moved off this host whose volumes (`VOLUME` of their images) are still on it. The volumes are removed after 7 days, or with the container. */
      volumes_left: number;
      /** @description Faults that the agent reports; empty if there are none. */
      faults: components['schemas']['HostFault'][];
      agent_version: string | null;
      stops_after_ms: number | null;
      engine: string | null;
      last_heard_at: string | null;
      /** Format: date-time */
      inserted_at: string;
      /** Format: date-time */
      updated_at: string;
      drain: components['schemas']['DrainProgress'] | null;
    };
    HostEnrol: {
      join_token: string;
      /** @description Public user nkey of the agent. */
      public_key: string;
    };
    HostEnrolment: {
      host: string;
      region: string;
      cluster: string;
      natsUrls: string[];
      jwt: string;
    };
    HostFault: {
      /** @description Kind of fault, such as `state_unwritable`. */
      kind: string;
      message: string;
    };
    HostPatch: {
      cordoned?: boolean;
      draining?: boolean;
      remove_orphans?: boolean;
      max_cpu_millis?: number | null;
      max_mem_bytes?: number | null;
      max_containers?: number | null;
      drain_at_once?: number | null;
      renew_expired?: boolean;
    };
    HostRenew: {
      host_key: string;
      /** @description Public user nkey of the agent. */
      public_key: string;
      /**
       * Format: date-time
       * @description Time on the agent’s clock; at most a minute from the server’s.
       */
      at: string;
      /** @description Random value, used once. */
      nonce: string;
      /** @description Ed25519, base64url, by the key, of `longshore-renew-1`, `host_key`, `public_key`, `at` and `nonce`, each followed by a line feed. */
      signature: string;
    };
    HostWithToken: {
      host: components['schemas']['Host'];
      join_token: string;
      /** Format: date-time */
      expires_at: string;
    };
    /** @description A host as its tenants see it. */
    TenantHost: {
      key: string;
      region: string;
    };
    TenantName: {
      /** @description A DNS label, in lower case. */
      name: string;
      /** Format: uuid */
      container_id: string;
      /**
       * @description `name`: for all containers of the tenant. `alias`: for those of the project, before names.
       * @enum {string}
       */
      kind: 'alias' | 'name';
      project: string | null;
      ipv4: string | null;
      ipv6: string;
    };
    TenantNetwork: {
      ipv4: string | null;
      /** @description Range of addresses, as CIDR; it is the cluster’s, for all tenants. */
      ipv6: string;
      /** @description Names are below it, and hold without it: `internal`. */
      domain: string;
      /** @description Number of containers in the network. */
      members: number;
    };
    P12Password: {
      p12_password: string;
    };
    LinkRedeem: {
      /** @description The fragment of the link, without `#`. */
      token: string;
      /** @description 32 random bytes in base64url, which the browser makes once and keeps: only with the same ones it gets the answer again. */
      verifier: string;
    };
    Peer: {
      /** Format: uuid */
      id: string;
      tenant_id: string;
      name: string;
      network: string;
      /** @enum {string} */
      state: 'active' | 'disabled' | 'expired';
      enabled: boolean;
      expires_at: string | null;
      ipv4: string;
      ipv6: string | null;
      routes: string[] | null;
      dns: string[] | null;
      public_key: string;
      certificate: {
        serial: string;
        not_after: string;
      };
      tokens: components['schemas']['PeerToken'][];
      last_handshake_at: string | null;
      rx_bytes: number | null;
      tx_bytes: number | null;
      endpoint: string | null;
      files_changed_at: string | null;
      problem: string | null;
      inserted_at: string;
      updated_at: string;
    };
    PeerCreate: {
      name: string;
      network?: string | null;
      expires_at?: string | null;
      routes?: string[] | null;
      dns?: string[] | null;
    };
    PeerLink: {
      /** Format: uuid */
      id: string;
      inserted_at: string;
      /** @description The last time at which it can be redeemed. */
      expires_at: string;
      redeemed_at: string | null;
    };
    PeerLinkCreate: {
      expires_at?: string | null;
    };
    PeerLinkWithUrl: {
      /** Format: uuid */
      id: string;
      inserted_at: string;
      /** @description The last time at which it can be redeemed. */
      expires_at: string;
      redeemed_at: string | null;
      url: string;
    };
    PeerPatch: {
      name?: string;
      enabled?: boolean;
      expires_at?: string | null;
      routes?: string[] | null;
      dns?: string[] | null;
    };
    PeerTraffic: {
      /** @description The start of the hour. */
      at: string;
      /** @description Came from the device. */
      rx_bytes: number;
      /** @description Went to the device. */
      tx_bytes: number;
    };
    PeerToken: {
      /** Format: uuid */
      id: string;
      /** @enum {string} */
      scope: 'download' | 'pac';
      inserted_at: string;
      expires_at: string;
    };
    PeerTokenCreate: {
      /** @enum {string} */
      scope: 'download' | 'pac';
      expires_at?: string | null;
    };
    PeerTokenWithText: {
      /** Format: uuid */
      id: string;
      /** @enum {string} */
      scope: 'download' | 'pac';
      inserted_at: string;
      expires_at: string;
      token: string;
    };
    PeerWithSecrets: {
      /** Format: uuid */
      id: string;
      tenant_id: string;
      name: string;
      network: string;
      /** @enum {string} */
      state: 'active' | 'disabled' | 'expired';
      enabled: boolean;
      expires_at: string | null;
      ipv4: string;
      ipv6: string | null;
      routes: string[] | null;
      dns: string[] | null;
      public_key: string;
      certificate: {
        serial: string;
        not_after: string;
      };
      tokens: components['schemas']['PeerToken'][];
      last_handshake_at: string | null;
      rx_bytes: number | null;
      tx_bytes: number | null;
      endpoint: string | null;
      files_changed_at: string | null;
      problem: string | null;
      inserted_at: string;
      updated_at: string;
      p12_password: string;
      pac_token: string;
      download_token: string;
    };
    RedeemedLink: {
      /** Format: uuid */
      peer_id: string;
      name: string;
      network: string;
      /** @enum {string} */
      state: 'active' | 'disabled' | 'expired';
      download_token: string;
      /** @description Expiry of the download token, ten minutes after the first answer. */
      expires_at: string;
      config_url: string;
      qr_url: string;
      profile_url: string;
      p12_url: string;
    };
    VpnProfile: {
      /** @constant */
      version: 1;
      peer_id: string;
      name: string;
      expires_at: string | null;
      server: {
        address: string;
        remote_id: string;
        ca: {
          pem: string;
          sha256: string;
          common_name: string;
        };
      };
      client: {
        local_id: string;
        /** @constant */
        auth: 'certificate';
        certificate: {
          key_type: string;
          serial: string;
          /** Format: date-time */
          not_after: string;
          p12_url: string;
        };
      };
      ike: {
        [key: string]: unknown;
      }[];
      esp: {
        [key: string]: unknown;
      }[];
      dns: string[];
      search_domains: string[];
      routes: {
        /** @enum {string} */
        mode: 'full' | 'split';
        include: string[];
      };
      mtu: number | null;
      /** @description For each platform, the values of its settings form, and the files that it accepts in place of them. */
      platforms: {
        [key: string]: {
          [key: string]: unknown;
        };
      };
    };
    Certificate: {
      serial: string;
      not_before: string;
      not_after: string;
    };
    Network: {
      name: string;
      endpoint: string;
      /** @default 51820 */
      wireguard_port: number;
      ipv4_pool: string;
      ipv6_pool: string | null;
      /**
       * @default [
       *       "0.0.0.0/0",
       *       "::/0"
       *     ]
       */
      routes: string[];
      /** @default [] */
      dns: string[];
      /**
       * @description Domains in which devices look for names of one label, while the tunnel is up. They need `dns`.
       * @default []
       */
      search_domains: string[];
      mtu: number | null;
      proxy: components['schemas']['Proxy'] | null;
      /**
       * @description If true, peers reach the containers of their tenant, by name and by address, once a host serves the network.
       * @default true
       */
      tenant_network: boolean;
      tenants: string[] | null;
      /** @description The host that serves the network; empty: a machine of yours does. */
      servers: string[];
      wireguard_public_key: string;
      /**
       * @description If true, the authority can certify only this endpoint and the peers. strongSwan before 5.9.14 refuses it. Cannot be changed.
       * @default false
       */
      name_constraints: boolean;
      ca_certificate: components['schemas']['Certificate'];
      server_certificate: components['schemas']['Certificate'];
      addresses: {
        total: number;
        allocated: number;
      };
      inserted_at: string;
      updated_at: string;
    };
    NetworkCreate: {
      name: string;
      endpoint: string;
      ipv4_pool: string;
      /** @description Default: `51820`. */
      wireguard_port?: number | null;
      ipv6_pool?: string | null;
      /** @description Default: `["0.0.0.0/0","::/0"]`. */
      routes?: string[] | null;
      /** @description Default: `[]`. */
      dns?: string[] | null;
      /** @description Default: `[]`. */
      search_domains?: string[] | null;
      mtu?: number | null;
      proxy?: components['schemas']['ProxyPut'] | null;
      /** @description Default: `true`. */
      tenant_network?: boolean | null;
      tenants?: string[] | null;
      /** @description Default: `false`. */
      name_constraints?: boolean | null;
    };
    NetworkPut: {
      endpoint: string;
      ipv4_pool: string;
      /** @description Default: `51820`. */
      wireguard_port?: number | null;
      ipv6_pool?: string | null;
      /** @description Default: `["0.0.0.0/0","::/0"]`. */
      routes?: string[] | null;
      /** @description Default: `[]`. */
      dns?: string[] | null;
      /** @description Default: `[]`. */
      search_domains?: string[] | null;
      mtu?: number | null;
      proxy?: components['schemas']['ProxyPut'] | null;
      /** @description Default: `true`. */
      tenant_network?: boolean | null;
      tenants?: string[] | null;
    };
    NetworkServers: {
      host_keys: string[];
    };
    NetworkServersPut: {
      /** @description The one host that serves the network. */
      host_keys: string[];
    };
    Proxy: {
      /**
       * @default PROXY
       * @enum {string}
       */
      type: 'PROXY' | 'HTTPS' | 'SOCKS5';
      host: string;
      port: number;
      /**
       * @description Domains reached through the proxy; if empty, all requests go through it.
       * @default []
       */
      domains: string[];
      /**
       * @description Domains that clients always reach without the proxy.
       * @default []
       */
      exclude: string[];
      /**
       * @description If the proxy does not answer, clients connect directly: traffic that it should hide becomes visible.
       * @default false
       */
      direct_fallback: boolean;
    };
    ProxyPut: {
      host: string;
      port: number;
      /** @description Default: `"PROXY"`. */
      type?: ('PROXY' | 'HTTPS' | 'SOCKS5') | null;
      /** @description Default: `[]`. */
      domains?: string[] | null;
      /** @description Default: `[]`. */
      exclude?: string[] | null;
      /** @description Default: `false`. */
      direct_fallback?: boolean | null;
    };
    Resealed: {
      key_id: string;
      resealed: number;
      remaining: number;
    };
    /** @description An OpenAPI 3.1 document. */
    ApiDocument: Record<string, never>;
    Health: {
      status: string;
    };
    ErrorBadRequest: {
      /** @constant */
      error: 'bad_request';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorUnauthenticated: {
      /** @constant */
      error: 'unauthenticated';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorForbidden: {
      /** @constant */
      error: 'forbidden';
      detail?: {
        /** @description A scope that would open the route. */
        scope: string;
      };
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorOverQuota: {
      /** @constant */
      error: 'over_quota';
      detail: {
        /** @enum {unknown} */
        dimension: 'containers' | 'cpu_millis' | 'mem_bytes' | 'vpn_peers' | 'ports' | 'disk_bytes';
        /** @description The total that the request would reach. */
        requested: number;
        max: number;
      };
    };
    ErrorNotFound: {
      /** @constant */
      error: 'not_found';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorMethodNotAllowed: {
      /** @constant */
      error: 'method_not_allowed';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorConflict: {
      /** @constant */
      error: 'conflict';
      /** @description For programs; absent during an upgrade. */
      reason?:
        | (
            | 'removing'
            | 'not_running'
            | 'in_use'
            | 'exists'
            | 'no_host'
            | 'managed'
            | 'overlaps'
            | 'elsewhere'
            | 'key_used'
            | 'too_many'
            | 'changed'
            | 'disabled'
            | 'refused'
            | 'unsupported'
            | 'damaged'
          )
        | string;
      detail?: {
        /** @description With `too_many`: the largest allowed number. */
        max?: number;
        /** @description With `in_use`: the first that use it. */
        containers?: string[];
      };
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorPreconditionFailed: {
      /** @constant */
      error: 'precondition_failed';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorTooLarge: {
      /** @constant */
      error: 'too_large';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorUnsupportedMediaType: {
      /** @constant */
      error: 'unsupported_media_type';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorInvalid: {
      /** @constant */
      error: 'invalid';
      /** @description Faults by field; `_` is the body as a whole. */
      details: {
        [key: string]: string[];
      };
    };
    ErrorUpgradeRequired: {
      /** @constant */
      error: 'upgrade_required';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorRateLimited: {
      /** @constant */
      error: 'rate_limited';
      /** @description For people; it may change at any time. */
      message?: string;
      /** @description As `Retry-After`. */
      retry_after_seconds?: number;
    };
    ErrorInternal: {
      /** @constant */
      error: 'internal';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorUnavailable: {
      /** @constant */
      error: 'unavailable';
      /** @description For people; it may change at any time. */
      message?: string;
    };
    ErrorTimeout: {
      /** @constant */
      error: 'timeout';
      /** @description For people; it may change at any time. */
      message?: string;
    };
  };
  responses: {
    /** @description unauthenticated */
    Unauthenticated: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'WWW-Authenticate': components['headers']['Challenge'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorUnauthenticated'];
      };
    };
    /** @description forbidden */
    Forbidden: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorForbidden'];
      };
    };
    /** @description method_not_allowed */
    MethodNotAllowed: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        Allow: components['headers']['Allow'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorMethodNotAllowed'];
      };
    };
    /** @description invalid */
    Invalid: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorInvalid'];
      };
    };
    /** @description rate_limited */
    RateLimited: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Retry-After': components['headers']['RetryAfter'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorRateLimited'];
      };
    };
    /** @description internal */
    Internal: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorInternal'];
      };
    };
    /** @description unavailable */
    Unavailable: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Retry-After': components['headers']['RetryAfter'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorUnavailable'];
      };
    };
    /** @description timeout */
    Timeout: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorTimeout'];
      };
    };
    /** @description bad_request */
    BadRequest: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorBadRequest'];
      };
    };
    /** @description forbidden or over_quota */
    ForbiddenOrOverQuota: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorForbidden'] | components['schemas']['ErrorOverQuota'];
      };
    };
    /** @description conflict */
    Conflict: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorConflict'];
      };
    };
    /** @description precondition_failed */
    PreconditionFailed: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorPreconditionFailed'];
      };
    };
    /** @description too_large */
    TooLarge: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorTooLarge'];
      };
    };
    /** @description unsupported_media_type */
    UnsupportedMediaType: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorUnsupportedMediaType'];
      };
    };
    /** @description not_found */
    NotFound: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorNotFound'];
      };
    };
    /** @description upgrade_required */
    UpgradeRequired: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['ErrorUpgradeRequired'];
      };
    };
    /** @description bad_request */
    BadRequestPage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
    /** @description not_found */
    NotFoundPage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
    /** @description method_not_allowed */
    MethodNotAllowedPage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        Allow: components['headers']['Allow'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
    /** @description invalid */
    InvalidPage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
    /** @description rate_limited */
    RateLimitedPage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Retry-After': components['headers']['RetryAfter'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
    /** @description internal */
    InternalPage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
    /** @description unavailable */
    UnavailablePage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Retry-After': components['headers']['RetryAfter'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
    /** @description timeout */
    TimeoutPage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
    /** @description forbidden */
    ForbiddenPage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
    /** @description conflict */
    ConflictPage: {
      headers: {
        'X-Request-Id': components['headers']['RequestId'];
        'Longshore-Version': components['headers']['Version'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        RateLimit: components['headers']['RateLimit'];
        'Set-Cookie': components['headers']['SetCookie'];
        [name: string]: unknown;
      };
      content: {
        'text/html; charset=utf-8': string;
      };
    };
  };
  parameters: {
    /** @description Only containers with this label: `key=value`, or `key` for any value. May be repeated; any of them will do. A page may then be short or empty: the list ends where `next_cursor` is absent. */
    'query.label': string[];
    /** @description The `next_cursor` of the previous page. */
    'query.cursor': string;
    /** @description Only containers with this name. May be repeated; any of them will do. */
    'query.name': string[];
    /** @description Only containers of this project. May be repeated; any of them will do. */
    'query.project': string[];
    /** @description Only containers on this host. May be repeated; any of them will do. */
    'query.host_key': string[];
    /** @description Of a stream: the `id` of the last frame that was received. */
    'header.Last-Event-ID': string;
    /** @description Check, and answer what would change, as `plan`: nothing is written. */
    'query.dry_run': boolean;
    /** @description `always`: look again at what the tag names, although nothing else changes. If it names another image, an update brings that in; else what runs goes on, and `update` in the status has `unmoved`. */
    'query.pull': 'always';
    /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
    'header.Idempotency-Key': string;
    'path.id': string;
    /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
    'header.If-Match': string;
    /** @description Only what is of this time or later, RFC 3339. */
    'query.since': string;
    /** @description Goes back from the newest (`desc`), or on from the oldest (`asc`), and lists in this order. Without it a page goes back, and lists the oldest first. */
    'query.order': 'desc' | 'asc';
    /** @description Only lines with this text in them. A page may then be short or empty: the list ends where `next_cursor` is absent. */
    'query.contains': string;
    'path.registry': string;
    'path.secret': string;
    'path.tenant': string;
    /** @description Only this operation, such as `container.create`. */
    'query.action': string;
    /** @description Only actions by this subject. */
    'query.subject': string;
    /** @description Only this outcome: `done`, or the code of a refusal. */
    'query.outcome': string;
    'path.key': string;
    'path.peer': string;
    /** @description `off` leaves out IPv6 addresses, routes and DNS servers, for a device with IPv6 disabled. */
    'query.ipv6': 'on' | 'off';
    'path.network': string;
  };
  requestBodies: never;
  headers: {
    /** @description The id of this request, in every log line about it. */
    RequestId: string;
    /** @description Stands for all that is declared of the resource, or for the file. */
    ETag: string;
    /** @description Seconds to wait. */
    RetryAfter: number;
    /** @description The methods of this path. */
    Allow: string;
    /** @description Names keys of the body that are ignored and look misspelt, and query parameters that are ignored; absent if there are none. */
    Warning: string;
    /** @description URL of the next step, or of the new resource. */
    Location: string;
    /** @description The release of the gateway that answers. */
    Version: string;
    /** @description Generation of the container after the write, for `GET /:id/wait?until=settled&generation=`; absent during an upgrade. */
    Generation: number;
    /** @description Requests of the tenant (`q`) in how many seconds (`w`); absent before the tenant is known. */
    RateLimitPolicy: string;
    /** @description Requests that have room now (`r`), and seconds until all have (`t`), as this gateway sees it. */
    RateLimit: string;
    /** @description `Bearer`, whatever is wrong. */
    Challenge: string;
    /** @description Of the session, or of a step of the sign-in. */
    SetCookie: string;
    /** @description The name for the file; absent if it is shown. */
    ContentDisposition: string;
  };
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  container_list: {
    parameters: {
      query?: {
        /** @description Only containers with this label: `key=value`, or `key` for any value. May be repeated; any of them will do. A page may then be short or empty: the list ends where `next_cursor` is absent. */
        label?: components['parameters']['query.label'];
        /** @description Items in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          'Longshore-Warning': components['headers']['Warning'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Container'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_create: {
    parameters: {
      query?: {
        /** @description If `false`, the container is created stopped. */
        start?: boolean;
      };
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ContainerCreate'];
      };
    };
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Warning': components['headers']['Warning'];
          'Longshore-Generation': components['headers']['Generation'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Container'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrOverQuota'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_overview: {
    parameters: {
      query?: {
        /** @description Only containers with this status. May be repeated; any of them will do. */
        status?: components['schemas']['ContainerStatus'][];
        /** @description Only containers with this name. May be repeated; any of them will do. */
        name?: components['parameters']['query.name'];
        /** @description Only containers of this project. May be repeated; any of them will do. */
        project?: components['parameters']['query.project'];
        /** @description Only containers on this host. May be repeated; any of them will do. */
        host_key?: components['parameters']['query.host_key'];
        /** @description Only containers with this label: `key=value`, or `key` for any value. May be repeated; any of them will do. A page may then be short or empty: the list ends where `next_cursor` is absent. */
        label?: components['parameters']['query.label'];
        /** @description `status`: with what `GET /:id/status` shows. `spec`: with the document and its ETag. */
        include?: ('status' | 'spec')[];
        /** @description Items in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerItem'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  spec_create: {
    parameters: {
      query?: {
        /** @description Check, and answer what would change, as `plan`: nothing is written. */
        dry_run?: components['parameters']['query.dry_run'];
        /** @description `always`: look again at what the tag names, although nothing else changes. If it names another image, an update brings that in; else what runs goes on, and `update` in the status has `unmoved`. */
        pull?: components['parameters']['query.pull'];
      };
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ContainerSpecPut'];
      };
    };
    responses: {
      /** @description With `dry_run=true`: what would be. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerSpec'];
            plan: components['schemas']['ContainerSpecPlan'];
          };
        };
      };
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Container'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrOverQuota'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_watch: {
    parameters: {
      query?: {
        /** @description Only containers with this status. May be repeated; any of them will do. */
        status?: components['schemas']['ContainerStatus'][];
        /** @description Only containers with this name. May be repeated; any of them will do. */
        name?: components['parameters']['query.name'];
        /** @description Only containers of this project. May be repeated; any of them will do. */
        project?: components['parameters']['query.project'];
        /** @description Only containers on this host. May be repeated; any of them will do. */
        host_key?: components['parameters']['query.host_key'];
        /** @description Only containers with this label: `key=value`, or `key` for any value. May be repeated; any of them will do. A page may then be short or empty: the list ends where `next_cursor` is absent. */
        label?: components['parameters']['query.label'];
      };
      header?: {
        /** @description Of a stream: the `id` of the last frame that was received. */
        'Last-Event-ID'?: components['parameters']['header.Last-Event-ID'];
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  spec_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerSpec'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  spec_put: {
    parameters: {
      query?: {
        /** @description Check, and answer what would change, as `plan`: nothing is written. */
        dry_run?: components['parameters']['query.dry_run'];
        /** @description `always`: look again at what the tag names, although nothing else changes. If it names another image, an update brings that in; else what runs goes on, and `update` in the status has `unmoved`. */
        pull?: components['parameters']['query.pull'];
      };
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ContainerSpecPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerSpec'];
            plan?: components['schemas']['ContainerSpecPlan'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrOverQuota'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  spec_patch: {
    parameters: {
      query?: {
        /** @description Check, and answer what would change, as `plan`: nothing is written. */
        dry_run?: components['parameters']['query.dry_run'];
        /** @description `always`: look again at what the tag names, although nothing else changes. If it names another image, an update brings that in; else what runs goes on, and `update` in the status has `unmoved`. */
        pull?: components['parameters']['query.pull'];
      };
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ContainerSpecPatch'];
        'application/merge-patch+json': components['schemas']['ContainerSpecPatch'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerSpec'];
            plan?: components['schemas']['ContainerSpecPlan'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrOverQuota'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  tenant_quota: {
    parameters: {
      query?: {
        /** @description A region, or `*` for all. */
        region?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          'Longshore-Warning': components['headers']['Warning'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Quota'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  tenant_hosts: {
    parameters: {
      query?: {
        /** @description Hosts in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['TenantHost'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  tenant_network: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['TenantNetwork'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  tenant_names: {
    parameters: {
      query?: {
        /** @description Names in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['TenantName'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  usage_get: {
    parameters: {
      query?: {
        /** @description Start of the period, RFC 3339. Default: the start of the month (UTC) of `to`. */
        from?: string;
        /** @description End of the period, RFC 3339, at most 31 days after `from`. Default: now. */
        to?: string;
        /** @description Containers in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Usage'];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  event_list: {
    parameters: {
      query?: {
        /** @description Events in a page; there may be fewer before the end. */
        limit?: number;
        /** @description Only events of this type. May be repeated; any of them will do. A page may then be short or empty: the list ends where `next_cursor` is absent. */
        type?: (
          | 'created'
          | 'start_requested'
          | 'stop_requested'
          | 'delete_requested'
          | 'operator_changed'
          | 'update_requested'
          | 'updated'
          | 'update_failed'
          | 'policy_changed'
          | 'labels_changed'
          | 'project_changed'
          | 'aliases_changed'
          | 'secrets_changed'
          | 'secret_changed'
          | 'registry_changed'
          | 'placed'
          | 'unplaced'
          | 'status'
          | 'status_unknown'
          | 'status_known'
          | 'removed'
        )[];
        /** @description Only what is of this time or later, RFC 3339. */
        since?: components['parameters']['query.since'];
        /** @description Only what is of an earlier time, RFC 3339. */
        until?: string;
        /** @description Goes back from the newest (`desc`), or on from the oldest (`asc`), and lists in this order. Without it a page goes back, and lists the oldest first. */
        order?: components['parameters']['query.order'];
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
        /** @description Keep the connection open and stream Server-Sent Events; `Last-Event-ID` resumes. */
        follow?: boolean;
      };
      header?: {
        /** @description Of a stream: the `id` of the last frame that was received. */
        'Last-Event-ID'?: components['parameters']['header.Last-Event-ID'];
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Event'][];
            next_cursor?: string;
          };
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  event_stream: {
    parameters: {
      query?: {
        /** @description Newest events to begin with. */
        limit?: number;
      };
      header?: {
        /** @description Of a stream: the `id` of the last frame that was received. */
        'Last-Event-ID'?: components['parameters']['header.Last-Event-ID'];
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  log_list: {
    parameters: {
      query?: {
        /** @description Only containers with this status. May be repeated; any of them will do. */
        status?: components['schemas']['ContainerStatus'][];
        /** @description Only containers with this name. May be repeated; any of them will do. */
        name?: components['parameters']['query.name'];
        /** @description Only containers of this project. May be repeated; any of them will do. */
        project?: components['parameters']['query.project'];
        /** @description Only containers on this host. May be repeated; any of them will do. */
        host_key?: components['parameters']['query.host_key'];
        /** @description Only containers with this label: `key=value`, or `key` for any value. May be repeated; any of them will do. A page may then be short or empty: the list ends where `next_cursor` is absent. */
        label?: components['parameters']['query.label'];
        /** @description Lines in a page; there may be fewer before the end. */
        limit?: number;
        /** @description Only lines with this text in them. A page may then be short or empty: the list ends where `next_cursor` is absent. */
        contains?: components['parameters']['query.contains'];
        /** @description Only what is of this time or later, RFC 3339. */
        since?: components['parameters']['query.since'];
        /** @description Only what is of an earlier time, RFC 3339. */
        until?: string;
        /** @description Goes back from the newest (`desc`), or on from the oldest (`asc`), and lists in this order. Without it a page goes back, and lists the oldest first. */
        order?: components['parameters']['query.order'];
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerLogEntry'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  registry_list: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['RegistryLogin'][];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  registry_put: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        registry: components['parameters']['path.registry'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['RegistryLoginPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['RegistryLogin'];
          };
        };
      };
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['RegistryLogin'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  registry_remove: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        registry: components['parameters']['path.registry'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; the answer has no body. */
      204: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  secret_list: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Secret'][];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  secret_put: {
    parameters: {
      query?: {
        /** @description Store the value alone: containers come to it with their next start or update. The same value without it brings them to it. */
        stage?: boolean;
      };
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        secret: components['parameters']['path.secret'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SecretPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Secret'];
          };
        };
      };
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Secret'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  secret_remove: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        secret: components['parameters']['path.secret'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; the answer has no body. */
      204: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Warning': components['headers']['Warning'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Container'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_delete: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Accepted; it is done soon. */
      202: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Container'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_update: {
    parameters: {
      query?: {
        /** @description `always`: look again at what the tag names, although nothing else changes. If it names another image, an update brings that in; else what runs goes on, and `update` in the status has `unmoved`. */
        pull?: components['parameters']['query.pull'];
      };
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ContainerPatch'];
        'application/merge-patch+json': components['schemas']['ContainerPatch'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Container'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrOverQuota'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_status: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerStatusView'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_versions: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerVersion'][];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_rollback: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ContainerRollback'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerSpec'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrOverQuota'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  labels_get: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Labels'];
          };
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  labels_put: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['LabelsPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Labels'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  labels_patch: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['LabelsPatch'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Labels'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  project_get: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Project'];
          };
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  project_put: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ProjectPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Project'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  policy_get: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Policy'];
          };
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  policy_put: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['PolicyPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Policy'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_secrets: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerSecrets'];
          };
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_secrets_put: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ContainerSecretsPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerSecrets'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_logs: {
    parameters: {
      query?: {
        /** @description Lines in a page; there may be fewer before the end. */
        limit?: number;
        /** @description Only lines with this text in them. A page may then be short or empty: the list ends where `next_cursor` is absent. */
        contains?: components['parameters']['query.contains'];
        /** @description Only what is of this time or later, RFC 3339. */
        since?: components['parameters']['query.since'];
        /** @description Only what is of an earlier time, RFC 3339. */
        until?: string;
        /** @description Goes back from the newest (`desc`), or on from the oldest (`asc`), and lists in this order. Without it a page goes back, and lists the oldest first. */
        order?: components['parameters']['query.order'];
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
        /** @description Keep the connection open and stream Server-Sent Events; `Last-Event-ID` resumes. */
        follow?: boolean;
      };
      header?: {
        /** @description Of a stream: the `id` of the last frame that was received. */
        'Last-Event-ID'?: components['parameters']['header.Last-Event-ID'];
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          'Longshore-Warning': components['headers']['Warning'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['LogEntry'][];
            next_cursor?: string;
          };
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_logs_stream: {
    parameters: {
      query?: {
        /** @description Newest lines to begin with. */
        limit?: number;
      };
      header?: {
        /** @description Of a stream: the `id` of the last frame that was received. */
        'Last-Event-ID'?: components['parameters']['header.Last-Event-ID'];
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_events: {
    parameters: {
      query?: {
        /** @description Events in a page; there may be fewer before the end. */
        limit?: number;
        /** @description Only events of this type. May be repeated; any of them will do. A page may then be short or empty: the list ends where `next_cursor` is absent. */
        type?: (
          | 'created'
          | 'start_requested'
          | 'stop_requested'
          | 'delete_requested'
          | 'operator_changed'
          | 'update_requested'
          | 'updated'
          | 'update_failed'
          | 'policy_changed'
          | 'labels_changed'
          | 'project_changed'
          | 'aliases_changed'
          | 'secrets_changed'
          | 'secret_changed'
          | 'registry_changed'
          | 'placed'
          | 'unplaced'
          | 'status'
          | 'status_unknown'
          | 'status_known'
          | 'removed'
        )[];
        /** @description Only what is of this time or later, RFC 3339. */
        since?: components['parameters']['query.since'];
        /** @description Only what is of an earlier time, RFC 3339. */
        until?: string;
        /** @description Goes back from the newest (`desc`), or on from the oldest (`asc`), and lists in this order. Without it a page goes back, and lists the oldest first. */
        order?: components['parameters']['query.order'];
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
        /** @description Keep the connection open and stream Server-Sent Events; `Last-Event-ID` resumes. */
        follow?: boolean;
      };
      header?: {
        /** @description Of a stream: the `id` of the last frame that was received. */
        'Last-Event-ID'?: components['parameters']['header.Last-Event-ID'];
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Event'][];
            next_cursor?: string;
          };
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_events_stream: {
    parameters: {
      query?: {
        /** @description Newest events to begin with. */
        limit?: number;
      };
      header?: {
        /** @description Of a stream: the `id` of the last frame that was received. */
        'Last-Event-ID'?: components['parameters']['header.Last-Event-ID'];
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_stats: {
    parameters: {
      query?: {
        /** @description Keep the connection open and stream Server-Sent Events. */
        follow?: boolean;
      };
      header?: never;
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerStats'];
          };
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_stats_stream: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_exec: {
    parameters: {
      query: {
        /** @description The program and its arguments, each a parameter of its own. */
        command: string[];
        /** @description Give the process a terminal. */
        tty?: boolean;
        /** @description Give the process the input of this session. */
        stdin?: boolean;
        /** @description User that runs the program, as `user` or `user:group`, by name or number. Default: the user of the container. */
        user?: string;
        /** @description Working directory of the program. Default: that of the container. */
        workdir?: string;
      };
      header?: never;
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The connection goes on as a WebSocket. */
      101: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      426: components['responses']['UpgradeRequired'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_forward: {
    parameters: {
      query: {
        /** @description Port on which the program in the container listens. */
        port: number;
      };
      header?: never;
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The connection goes on as a WebSocket. */
      101: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      426: components['responses']['UpgradeRequired'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_run: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['RunCreate'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Run'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_wait: {
    parameters: {
      query?: {
        /** @description The status to wait for. May be repeated: any of them will do. */
        status?: (
          | 'pending'
          | 'pulling'
          | 'starting'
          | 'running'
          | 'backoff'
          | 'stopping'
          | 'stopped'
          | 'failed'
          | 'unknown'
          | 'lost'
          | 'removing'
          | 'removed'
        )[];
        /** @description Waits for the `outcome` of the newest change, in place of a status. */
        until?: 'settled';
        /** @description With `until`: generation to wait for. Default: the newest. */
        generation?: number;
        /** @description With `until`: seconds for which a container without a health check must stay up. */
        stable_seconds?: number;
        /** @description With `until`: if true, a container is settled only when it has ended. Default: true with the policy `never`. */
        job?: boolean;
        /** @description Seconds. */
        timeout?: number;
      };
      header?: never;
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['WaitedStatus'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_start: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Warning': components['headers']['Warning'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Container'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_stop: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Warning': components['headers']['Warning'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Container'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  tenant_list: {
    parameters: {
      query?: {
        /** @description Items in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['TenantSummary'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_find: {
    parameters: {
      query?: {
        /** @description Only containers of this tenant. */
        tenant?: string;
        /** @description Only containers on this host. */
        host?: string;
        /** @description Only containers with this status. */
        status?: components['schemas']['ContainerStatus'];
        /** @description Items in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['OperatorContainer'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  tenant_get: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        tenant: components['parameters']['path.tenant'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Tenant'];
          };
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  tenant_put: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        tenant: components['parameters']['path.tenant'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['TenantPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Tenant'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  tenant_revoke: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        tenant: components['parameters']['path.tenant'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['RevocationCreate'];
      };
    };
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Revocation'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_inspect: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        tenant: components['parameters']['path.tenant'];
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['ContainerInspection'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  container_operate: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        tenant: components['parameters']['path.tenant'];
        id: components['parameters']['path.id'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['OperatorFields'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Generation': components['headers']['Generation'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Container'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  audit_find: {
    parameters: {
      query?: {
        /** @description Start of the period, RFC 3339. Default: everything that is kept. */
        from?: string;
        /** @description End of the period, RFC 3339. Default: now. */
        to?: string;
        /** @description Only this operation, such as `container.create`. */
        action?: components['parameters']['query.action'];
        /** @description Only actions by this subject. */
        subject?: components['parameters']['query.subject'];
        /** @description Only this outcome: `done`, or the code of a refusal. */
        outcome?: components['parameters']['query.outcome'];
        /** @description Lines in a page; there may be fewer before the end. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
        /** @description Only actions that concern this tenant. */
        tenant?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['AuditLine'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  event_stream_all: {
    parameters: {
      query?: {
        /** @description Only events of this tenant. */
        tenant?: string;
        /** @description Only events of this type. May be repeated; any of them will do. */
        type?: (
          | 'created'
          | 'start_requested'
          | 'stop_requested'
          | 'delete_requested'
          | 'operator_changed'
          | 'update_requested'
          | 'updated'
          | 'update_failed'
          | 'policy_changed'
          | 'labels_changed'
          | 'project_changed'
          | 'aliases_changed'
          | 'secrets_changed'
          | 'secret_changed'
          | 'registry_changed'
          | 'placed'
          | 'unplaced'
          | 'status'
          | 'status_unknown'
          | 'status_known'
          | 'removed'
        )[];
        /** @description Newest events to begin with, of which those of another type are left out. */
        limit?: number;
      };
      header?: {
        /** @description Of a stream: the `id` of the last frame that was received. */
        'Last-Event-ID'?: components['parameters']['header.Last-Event-ID'];
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'text/event-stream': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  usage_find: {
    parameters: {
      query?: {
        /** @description Start of the period, RFC 3339. Default: the start of the month (UTC) of `to`. */
        from?: string;
        /** @description End of the period, RFC 3339, at most 31 days after `from`. Default: now. */
        to?: string;
        /** @description Subject of a row: an hour, a tenant or a container. */
        by?: 'hour' | 'tenant' | 'container';
        /** @description Only usage of this tenant. */
        tenant?: string;
        /** @description Rows in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['OperatorUsage'][];
            /** @description The start of the first hour. */
            from?: string;
            /** @description The end of the last hour. */
            to?: string;
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  host_list: {
    parameters: {
      query?: {
        /** @description Items in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Host'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  host_create: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['HostCreate'];
      };
    };
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['HostWithToken'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  host_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        key: components['parameters']['path.key'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['HostDetail'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  host_remove: {
    parameters: {
      query?: {
        /** @description Remove the host even if containers may run on it: it stays fenced until they have stopped. */
        force?: boolean;
        /** @description With `force`: you confirm that nothing runs on the host any more; its containers are placed elsewhere at once. */
        dead?: boolean;
      };
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        key: components['parameters']['path.key'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Accepted; it is done soon. */
      202: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Host'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  host_update: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        key: components['parameters']['path.key'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['HostPatch'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Host'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  host_join_token: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        key: components['parameters']['path.key'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['HostWithToken'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  host_enrol: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['HostEnrol'];
      };
    };
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['HostEnrolment'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      405: components['responses']['MethodNotAllowed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  host_renew: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['HostRenew'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['HostEnrolment'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      405: components['responses']['MethodNotAllowed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  key_list: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Key'][];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  key_create: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['KeyCreate'];
      };
    };
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['KeyWithToken'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  key_remove: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        key_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; the answer has no body. */
      204: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  audit_list: {
    parameters: {
      query?: {
        /** @description Start of the period, RFC 3339. Default: everything that is kept. */
        from?: string;
        /** @description End of the period, RFC 3339. Default: now. */
        to?: string;
        /** @description Only this operation, such as `container.create`. */
        action?: components['parameters']['query.action'];
        /** @description Only actions by this subject. */
        subject?: components['parameters']['query.subject'];
        /** @description Only this outcome: `done`, or the code of a refusal. */
        outcome?: components['parameters']['query.outcome'];
        /** @description Lines in a page; there may be fewer before the end. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['AuditLine'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_list: {
    parameters: {
      query?: {
        /** @description Items in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Peer'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_create: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['PeerCreate'];
      };
    };
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['PeerWithSecrets'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrOverQuota'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Peer'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_remove: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; the answer has no body. */
      204: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_update: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['PeerPatch'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Peer'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_traffic: {
    parameters: {
      query?: {
        /** @description Start of the period, RFC 3339. Default: the start of the month (UTC) of `to`. */
        from?: string;
        /** @description End of the period, RFC 3339, at most 31 days after `from`. Default: now. */
        to?: string;
      };
      header?: never;
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['PeerTraffic'][];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_rotate: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['PeerWithSecrets'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_token_create: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['PeerTokenCreate'];
      };
    };
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['PeerTokenWithText'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_token_remove: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        peer: components['parameters']['path.peer'];
        token: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; the answer has no body. */
      204: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_link_list: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['PeerLink'][];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_link_create: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['PeerLinkCreate'];
      };
    };
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['PeerLinkWithUrl'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_link_remove: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        peer: components['parameters']['path.peer'];
        link: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; the answer has no body. */
      204: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_link_redeem: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['LinkRedeem'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['RedeemedLink'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      405: components['responses']['MethodNotAllowed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  peer_password: {
    parameters: {
      query?: never;
      header?: {
        /** @description For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of. */
        'Idempotency-Key'?: components['parameters']['header.Idempotency-Key'];
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['P12Password'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  artifact_config: {
    parameters: {
      query?: {
        /** @description Download token of the peer, in place of other credentials. */
        token?: string;
        /** @description `off` leaves out IPv6 addresses, routes and DNS servers, for a device with IPv6 disabled. */
        ipv6?: components['parameters']['query.ipv6'];
      };
      header?: never;
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          'Longshore-Warning': components['headers']['Warning'];
          'Content-Disposition': components['headers']['ContentDisposition'];
          [name: string]: unknown;
        };
        content: {
          'text/plain; charset=utf-8': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  artifact_qr: {
    parameters: {
      query?: {
        /** @description Download token of the peer, in place of other credentials. */
        token?: string;
        /** @description `off` leaves out IPv6 addresses, routes and DNS servers, for a device with IPv6 disabled. */
        ipv6?: components['parameters']['query.ipv6'];
      };
      header?: never;
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          'Longshore-Warning': components['headers']['Warning'];
          'Content-Disposition': components['headers']['ContentDisposition'];
          [name: string]: unknown;
        };
        content: {
          'image/svg+xml': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  artifact_profile: {
    parameters: {
      query?: {
        /** @description Download token of the peer, in place of other credentials. */
        token?: string;
        /** @description Form of the settings: JSON, or a file for Apple, strongSwan for Android, Windows or strongSwan for Linux. */
        format?: 'json' | 'mobileconfig' | 'sswan' | 'ps1' | 'swanctl';
      };
      header?: never;
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          'Longshore-Warning': components['headers']['Warning'];
          'Content-Disposition': components['headers']['ContentDisposition'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['VpnProfile'];
          'application/x-apple-aspen-config': string;
          'application/vnd.strongswan.profile': string;
          'text/plain; charset=utf-8': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  artifact_p12: {
    parameters: {
      query?: {
        /** @description Download token of the peer, in place of other credentials. */
        token?: string;
        /** @description Encryption: 3DES and SHA-1, which every system imports, or AES-256 and SHA-256. */
        encryption?: 'compat' | 'modern';
      };
      header?: never;
      path: {
        peer: components['parameters']['path.peer'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          'Longshore-Warning': components['headers']['Warning'];
          'Content-Disposition': components['headers']['ContentDisposition'];
          [name: string]: unknown;
        };
        content: {
          'application/x-pkcs12': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  artifact_pac: {
    parameters: {
      query?: {
        /** @description PAC token. */
        token?: string;
      };
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Warning': components['headers']['Warning'];
          [name: string]: unknown;
        };
        content: {
          'application/x-ns-proxy-autoconfig': string;
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          'Longshore-Warning': components['headers']['Warning'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  crl: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          [name: string]: unknown;
        };
        content: {
          'application/pkix-crl': string;
        };
      };
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  forage_metrics: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'Longshore-Warning': components['headers']['Warning'];
          [name: string]: unknown;
        };
        content: {
          'text/plain; version=0.0.4; charset=utf-8': string;
        };
      };
      401: components['responses']['Unauthenticated'];
      405: components['responses']['MethodNotAllowed'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_list: {
    parameters: {
      query?: {
        /** @description Items in a page. */
        limit?: number;
        /** @description The `next_cursor` of the previous page. */
        cursor?: components['parameters']['query.cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Network'][];
            next_cursor?: string;
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_create: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['NetworkCreate'];
      };
    };
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Network'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Network'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_put: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['NetworkPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Network'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_remove: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; the answer has no body. */
      204: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_servers_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['NetworkServers'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_servers_put: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['NetworkServersPut'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['NetworkServers'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_servers_remove: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 412 unless the resource has one of them; `*`: unless there is one. */
        'If-Match'?: components['parameters']['header.If-Match'];
        /** @description ETags: 412 if the resource has one of them; `*`: if there is one. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; the answer has no body. */
      204: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_wireguard: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'text/plain; charset=utf-8': string;
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_swanctl: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'text/plain; charset=utf-8': string;
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_nftables: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'text/plain; charset=utf-8': string;
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_server_certificate: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/x-pem-file': string;
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_server_key: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/x-pem-file': string;
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  network_ca: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path: {
        network: components['parameters']['path.network'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/x-pem-file': string;
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  secret_reseal: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Resealed'];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  signing_key_list: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['SigningKey'][];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  signing_key_rotate: {
    parameters: {
      query?: {
        /** @description Also end the earlier keys: every token that they signed is refused within two minutes. */
        end_others?: boolean;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Created. */
      201: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'RateLimit-Policy': components['headers']['RateLimitPolicy'];
          RateLimit: components['headers']['RateLimit'];
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['SigningKey'][];
          };
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      412: components['responses']['PreconditionFailed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  jwks: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['KeySet'];
        };
      };
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  login: {
    parameters: {
      query?: {
        /** @description Path of this server to return to. */
        return_to?: string;
        /** @description Tenant to sign in to. If absent, all are offered. */
        tenant?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; it goes on at another page. */
      303: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          Location: components['headers']['Location'];
          'Set-Cookie': components['headers']['SetCookie'];
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['BadRequestPage'];
      404: components['responses']['NotFoundPage'];
      405: components['responses']['MethodNotAllowedPage'];
      422: components['responses']['InvalidPage'];
      429: components['responses']['RateLimitedPage'];
      500: components['responses']['InternalPage'];
      503: components['responses']['UnavailablePage'];
      504: components['responses']['TimeoutPage'];
    };
  };
  login_callback: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; it goes on at another page. */
      303: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          Location: components['headers']['Location'];
          'Set-Cookie': components['headers']['SetCookie'];
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['BadRequestPage'];
      403: components['responses']['ForbiddenPage'];
      404: components['responses']['NotFoundPage'];
      405: components['responses']['MethodNotAllowedPage'];
      409: components['responses']['ConflictPage'];
      429: components['responses']['RateLimitedPage'];
      500: components['responses']['InternalPage'];
      503: components['responses']['UnavailablePage'];
      504: components['responses']['TimeoutPage'];
    };
  };
  login_tenants: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'Set-Cookie': components['headers']['SetCookie'];
          [name: string]: unknown;
        };
        content: {
          'text/html; charset=utf-8': string;
        };
      };
      400: components['responses']['BadRequestPage'];
      404: components['responses']['NotFoundPage'];
      405: components['responses']['MethodNotAllowedPage'];
      429: components['responses']['RateLimitedPage'];
      500: components['responses']['InternalPage'];
      503: components['responses']['UnavailablePage'];
      504: components['responses']['TimeoutPage'];
    };
  };
  login_choose: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        tenant: components['parameters']['path.tenant'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; it goes on at another page. */
      303: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          Location: components['headers']['Location'];
          'Set-Cookie': components['headers']['SetCookie'];
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['BadRequestPage'];
      403: components['responses']['ForbiddenPage'];
      404: components['responses']['NotFoundPage'];
      405: components['responses']['MethodNotAllowedPage'];
      409: components['responses']['ConflictPage'];
      429: components['responses']['RateLimitedPage'];
      500: components['responses']['InternalPage'];
      503: components['responses']['UnavailablePage'];
      504: components['responses']['TimeoutPage'];
    };
  };
  login_session: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'Set-Cookie': components['headers']['SetCookie'];
          [name: string]: unknown;
        };
        content: {
          'text/html; charset=utf-8': string;
        };
      };
      405: components['responses']['MethodNotAllowedPage'];
      429: components['responses']['RateLimitedPage'];
      500: components['responses']['InternalPage'];
      503: components['responses']['UnavailablePage'];
      504: components['responses']['TimeoutPage'];
    };
  };
  login_once: {
    parameters: {
      query: {
        /** @description The code of the link. */
        code: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; it goes on at another page. */
      303: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          Location: components['headers']['Location'];
          'Set-Cookie': components['headers']['SetCookie'];
          [name: string]: unknown;
        };
        content?: never;
      };
      403: components['responses']['ForbiddenPage'];
      404: components['responses']['NotFoundPage'];
      405: components['responses']['MethodNotAllowedPage'];
      409: components['responses']['ConflictPage'];
      422: components['responses']['InvalidPage'];
      429: components['responses']['RateLimitedPage'];
      500: components['responses']['InternalPage'];
      503: components['responses']['UnavailablePage'];
      504: components['responses']['TimeoutPage'];
    };
  };
  login_device: {
    parameters: {
      query: {
        /** @description Code from `verification_uri_complete`. */
        ask: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          'Set-Cookie': components['headers']['SetCookie'];
          [name: string]: unknown;
        };
        content: {
          'text/html; charset=utf-8': string;
        };
      };
      400: components['responses']['BadRequestPage'];
      404: components['responses']['NotFoundPage'];
      405: components['responses']['MethodNotAllowedPage'];
      422: components['responses']['InvalidPage'];
      429: components['responses']['RateLimitedPage'];
      500: components['responses']['InternalPage'];
      503: components['responses']['UnavailablePage'];
      504: components['responses']['TimeoutPage'];
    };
  };
  logout: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done; it goes on at another page. */
      303: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          Location: components['headers']['Location'];
          'Set-Cookie': components['headers']['SetCookie'];
          [name: string]: unknown;
        };
        content?: never;
      };
      403: components['responses']['ForbiddenPage'];
      405: components['responses']['MethodNotAllowedPage'];
      409: components['responses']['ConflictPage'];
      429: components['responses']['RateLimitedPage'];
      500: components['responses']['InternalPage'];
      503: components['responses']['UnavailablePage'];
      504: components['responses']['TimeoutPage'];
    };
  };
  sign_in_device: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['DeviceBegin'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['DeviceSignIn'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  sign_in_device_token: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['DeviceTokenAsk'];
      };
    };
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['DeviceToken'];
          };
        };
      };
      400: components['responses']['BadRequest'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      405: components['responses']['MethodNotAllowed'];
      409: components['responses']['Conflict'];
      413: components['responses']['TooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['Invalid'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  openapi: {
    parameters: {
      query?: never;
      header?: {
        /** @description ETags: 304 if the answer still has one of them. */
        'If-None-Match'?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ApiDocument'];
        };
      };
      /** @description The answer is as `If-None-Match` says. */
      304: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          ETag: components['headers']['ETag'];
          [name: string]: unknown;
        };
        content?: never;
      };
      405: components['responses']['MethodNotAllowed'];
      422: components['responses']['Invalid'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  healthz: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Health'];
        };
      };
      405: components['responses']['MethodNotAllowed'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
  readyz: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done. */
      200: {
        headers: {
          'X-Request-Id': components['headers']['RequestId'];
          'Longshore-Version': components['headers']['Version'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Health'];
        };
      };
      405: components['responses']['MethodNotAllowed'];
      500: components['responses']['Internal'];
      503: components['responses']['Unavailable'];
      504: components['responses']['Timeout'];
    };
  };
}
