import Type from 'typebox';

/** A key of WireGuard: 32 bytes in base64. */
export const WireguardKey = Type.String({ pattern: '^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$' });
