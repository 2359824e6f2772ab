declare const GLOSSARY: [told: string, forms: string[]][];
/** An opaque identifier of the server's version. */
declare const SERVER: string;
