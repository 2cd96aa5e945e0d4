/** Answer as a browser sees it. */
export interface Answer {
  status: number;
  location: string | null;
  /** `name=value` of the cookie it set; empty when it set none. */
  cookie: string;
  headers: Headers;
  text: string;
}

/** A browser's request, redirects not followed; `cookie` is what an earlier answer set. */
export async function ask(
  base: string,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${base}${path}`, { method, headers, redirect: 'manual' });
  return {
    status: response.status,
    location: response.headers.get('location'),
    cookie: (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '',
    headers: response.headers,
    text: await response.text(),
  };
}
