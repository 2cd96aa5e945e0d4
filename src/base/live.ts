export const LIVE_DEMO_ALLOWED = 'yes';

interface LiveSettings {
  LIVE_CONNECTORS: string;
  ALLOW_LIVE_DEMO: string;
}

export function isLive({ LIVE_CONNECTORS, ALLOW_LIVE_DEMO }: LiveSettings): boolean {
  return LIVE_CONNECTORS.trim() !== '' && ALLOW_LIVE_DEMO !== LIVE_DEMO_ALLOWED;
}

const PROXIES_UNSET =
  'TRUSTED_PROXIES: has to be set while LIVE_CONNECTORS names a bank: the number or the networks of ' +
  'the proxies that append to X-Forwarded-For, or 0 without any';

export function liveFaults(
  settings: LiveSettings &
    Record<'PUBLIC_URL' | 'WEBHOOK_ALLOW_PRIVATE' | 'TRUSTED_PROXIES', string>,
): string[] {
  if (!isLive(settings)) return [];
  const { PUBLIC_URL, WEBHOOK_ALLOW_PRIVATE, TRUSTED_PROXIES } = settings;
  return [
    ...(PUBLIC_URL.startsWith('https://')
      ? []
      : [`PUBLIC_URL: ${PUBLIC_URL} has to be https while LIVE_CONNECTORS names a bank`]),
    ...(WEBHOOK_ALLOW_PRIVATE === ''
      ? []
      : ['WEBHOOK_ALLOW_PRIVATE: has to be unset while LIVE_CONNECTORS names a bank']),
    ...(TRUSTED_PROXIES === '' ? [PROXIES_UNSET] : []),
  ];
}
