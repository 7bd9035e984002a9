/**
 * Names of the schemas of bodies and answers. The OpenAPI document has each once, under its name,
 * and clients generate their types from it. A test fails for a route whose body or answer has none.
 */
import Type, { type TSchema } from 'typebox';
import * as audit from './api/audit/line.ts';
import * as container from './api/container.ts';
import * as fields from './api/fields/container.ts';
import * as drain from './api/drain.ts';
import { Event, OperatorEvent } from './api/event.ts';
import * as frames from './api/frames.ts';
import * as host from './api/host.ts';
import * as key from './api/keys/key.ts';
import * as session from './api/keys/session.ts';
import { KeySet, SigningKeyView } from './api/keys/signing-key.ts';
import { ContainerLogEntry, LogEntry } from './api/log.ts';
import * as network from './api/network.ts';
import * as peer from './api/peer.ts';
import * as link from './api/peer-link.ts';
import * as policy from './api/policy.ts';
import { RegistryRules } from './api/registry.ts';
import * as secret from './api/secret.ts';
import * as run from './api/sessions/run.ts';
import * as spec from './api/spec.ts';
import * as tenant from './api/tenant.ts';
import * as tenantNetwork from './api/tenant-network.ts';
import { ContainerStats } from './api/usage/stats.ts';
import * as usage from './api/usage/usage.ts';

/** Answers about the API itself. */
export const Health = Type.Object({ status: Type.String() }, { additionalProperties: false });
export const ApiDocument = Type.Object({}, { description: 'An OpenAPI 3.1 document.' });

export const components = {
  Container: container.Container,
  ContainerItem: container.ContainerItem,
  ContainerCreate: container.CreateBody,
  ContainerPatch: container.UpdateBody,
  ContainerInspection: container.ContainerInspection,
  ContainerStatus: container.ContainerStatus,
  ContainerStatusView: container.ContainerStatusView,
  WaitedStatus: container.WaitedStatusView,
  ConfigFile: container.ConfigFile,
  OperatorContainer: container.OperatorContainer,
  OperatorFields: container.OperatorFields,
  Port: fields.Port,
  PortAddress: container.PortAddress,
  PullPolicy: fields.PullPolicy,
  PullProgress: container.PullProgress,
  Reason: container.Reason,
  SecretRef: container.SecretRef,
  Update: container.UpdateView,
  UpdatedFields: container.Changed,

  ContainerSpec: spec.Spec,
  ContainerSpecPatch: spec.SpecPatch,
  ContainerSpecPlan: spec.SpecPlan,
  ContainerSpecPut: spec.SpecBody,

  HealthCheck: policy.HealthCheck,
  NoCheck: policy.NoCheck,
  Policy: policy.PolicyView,
  PolicyPut: policy.PolicyBody,

  ContainerSecrets: secret.ContainerSecrets,
  ContainerSecretsPut: secret.ContainerSecretsBody,
  RegistryLogin: secret.LoginView,
  RegistryLoginPut: secret.LoginBody,
  Secret: secret.SecretView,
  SecretPut: secret.SecretBody,
  SecretUses: secret.SecretUses,

  EventFrame: frames.EventFrame,
  OperatorEventFrame: frames.OperatorEventFrame,
  LogFrame: frames.LogFrame,
  StatsFrame: frames.StatsFrame,
  WatchFrame: frames.WatchFrame,
  StreamEnd: frames.StreamEnd,
  StreamReset: frames.StreamReset,

  Run: run.RunView,
  RunCreate: run.RunBody,

  Key: key.KeyView,
  KeyCreate: key.KeyBody,
  KeyWithToken: key.KeyWithToken,
  KeySet,
  SigningKey: SigningKeyView,
  DeviceBegin: session.DeviceBody,
  DeviceSignIn: session.DeviceSignIn,
  DeviceToken: session.DeviceToken,
  DeviceTokenAsk: session.DeviceTokenBody,

  AuditAuthor: audit.Author,
  AuditDetail: audit.AuditDetail,
  AuditLine: audit.AuditLine,
  Event,
  OperatorEvent,
  LogEntry,
  ContainerLogEntry,

  Labels: fields.containerFields.labels.shown,
  LabelsPut: fields.containerFields.labels.given,
  LabelsPatch: fields.containerFields.labels.patch,
  ContainerVersion: container.ContainerVersion,
  ContainerRollback: container.RollbackBody,

  Project: container.ProjectView,
  ProjectPut: container.ProjectBody,

  ContainerStats,
  Usage: usage.UsageView,
  UsageAmounts: usage.UsageAmounts,
  ContainerUsage: usage.ContainerUsage,
  OperatorUsage: usage.OperatorUsage,

  Caps: tenant.Caps,
  Quota: tenant.QuotaView,
  RegionCaps: tenant.RegionCaps,
  RegistryRules,
  Revocation: tenant.RevocationView,
  RevocationCreate: tenant.RevocationBody,
  Tenant: tenant.TenantView,
  TenantPut: tenant.TenantBody,
  TenantSummary: tenant.TenantSummary,

  BlockedContainer: drain.BlockedContainer,
  Capacity: host.Capacity,
  DrainProgress: drain.DrainProgress,
  Host: host.HostView,
  HostCreate: host.HostCreateBody,
  HostDetail: drain.HostDetail,
  HostEnrol: host.EnrolBody,
  HostEnrolment: host.HostEnrolment,
  HostFault: host.HostFault,
  HostPatch: host.HostUpdateBody,
  HostRenew: host.RenewBody,
  HostWithToken: host.HostWithToken,
  TenantHost: host.TenantHost,
  TenantName: tenantNetwork.TenantName,
  TenantNetwork: tenantNetwork.TenantNetwork,

  P12Password: peer.P12Password,
  LinkRedeem: link.LinkRedeemBody,
  Peer: peer.PeerView,
  PeerCreate: peer.PeerCreateBody,
  PeerLink: link.PeerLinkView,
  PeerLinkCreate: link.PeerLinkBody,
  PeerLinkWithUrl: link.PeerLinkWithUrl,
  PeerPatch: peer.PeerUpdateBody,
  PeerTraffic: peer.PeerTraffic,
  PeerToken: peer.PeerTokenView,
  PeerTokenCreate: peer.PeerTokenBody,
  PeerTokenWithText: peer.PeerTokenWithText,
  PeerWithSecrets: peer.PeerWithSecrets,
  RedeemedLink: link.RedeemedLink,
  VpnProfile: peer.VpnProfile,

  Certificate: network.Certificate,
  Network: network.NetworkView,
  NetworkCreate: network.NetworkCreateBody,
  NetworkPut: network.NetworkBody,
  NetworkServers: network.NetworkServersView,
  NetworkServersPut: network.NetworkServersBody,
  Proxy: network.Proxy,
  ProxyPut: network.ProxyBody,
  Resealed: network.Resealed,

  ApiDocument,
  Health,
} as const satisfies Readonly<Record<string, TSchema>>;
