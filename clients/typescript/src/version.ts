/** Version of this package, sent as `User-Agent`. */
export const VERSION = '1.0.0';
