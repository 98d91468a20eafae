/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages: from bytes to C structures and back, generic over the rows of messages.h. */
#ifndef OFLIB_CODEC_H
#define OFLIB_CODEC_H

#include <oflib/arena.h>
#include <oflib/err.h>
#include <oflib/messages.h>

#define OF_MSG_MAX 65535

/* One version of the protocol. */
struct of_dialect {
    uint8_t version;
    uint8_t multipart_request, multipart_reply; /* types; 1.0 calls them statistics */
    uint8_t multipart_pad;                      /* bytes after a multipart message's flags */
    const struct of_msg_row *(*msg)(uint8_t type);
    const struct of_mp_row *(*mp)(uint16_t type);
};
extern const struct of_dialect of_dialect_13; /* 1.0's: messages10.h */

struct of_msg {
    uint8_t version;
    uint8_t type; /* OFPT_ */
    uint32_t xid;
    const struct of_msg_row *row;
    /* Multipart messages (7.3.5) only: */
    const struct of_mp_row *mp;
    uint16_t mp_flags;
    const struct of_struct_row *body_row; /* of `body` */
    void *body;                           /* struct of_NAME of body_row */
    struct of_bytes raw;                  /* the whole message as received */
};

/* Decodes one message of exactly raw.n bytes (its header's length must say the same).  Everything
 * the result points to is in the arena or in `raw`; both must outlive it.
 * On error the header's fields (version, type, xid, raw) are set as far as there are bytes. */
int of_decode(struct of_bytes raw, struct of_arena *arena, struct of_msg *out);

/* The same for a version of the caller's choice; of_decode takes 1.3. */
int of_decode_as(const struct of_dialect *d, struct of_bytes raw, struct of_arena *arena,
                 struct of_msg *out);

/* Appends the message and computes all its lengths: the caller need not fill in members that hold
 * a length on the wire (len, length).
 * -EMSGSIZE: more than 65,535 bytes, or the writer is full; the writer is as it was before.
 * The rows must be those of msg->version. */
int of_encode(struct of_wr *w, const struct of_msg *msg);

/* The common case: a message of this type with this body (whose structure the type's row names;
 * NULL for an empty body). */
int of_encode_body(struct of_wr *w, uint8_t type, uint32_t xid, const void *body);

/* A multipart request or reply (OFPT_MULTIPART_REQUEST or _REPLY). */
int of_encode_multipart(struct of_wr *w, uint8_t type, uint32_t xid, uint16_t mp, uint16_t flags,
                        const void *body);

/* The same in a version of the caller's choice. */
int of_encode_body_as(const struct of_dialect *d, struct of_wr *w, uint8_t type, uint32_t xid,
                      const void *body);
/* m has type, xid, mp_flags and body; the rest is filled in. */
int of_encode_multipart_as(const struct of_dialect *d, struct of_wr *w, struct of_msg *m,
                           uint16_t mp);

/* A single structure or list.  Decoding must consume exactly all bytes. */
int of_encode_struct(struct of_wr *w, const struct of_struct_row *row, const void *body);
int of_decode_struct(struct of_bytes raw, const struct of_struct_row *row, struct of_arena *arena,
                     void **out);
int of_encode_list(struct of_wr *w, const struct of_list_row *row, const struct of_list *list);
int of_decode_list(struct of_bytes raw, const struct of_list_row *row, struct of_arena *arena,
                   struct of_list *out);

/* An error message that answers `request` (7.4.4): the first 64 bytes of the request, or all of
 * it where it is shorter, as data; for OFPHFC_ errors give `text` instead (may be NULL). */
int of_encode_error(struct of_wr *w, uint32_t xid, int err, struct of_bytes request,
                    const char *text);

/* Framing: the length in the header at p of n buffered bytes.  0: more bytes are needed to tell;
 * <0: the length is impossible (below 8). */
int of_frame_len(const uint8_t *p, size_t n);

#endif
