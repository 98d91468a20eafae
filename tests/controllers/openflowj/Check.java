// SPDX-License-Identifier: Apache-2.0
//
// Check - a controller out of OpenFlowJ, the codec of Floodlight and Big Switch's controllers
//
// Waits for a switch with two ports on 127.0.0.1:6653, asks it for all that OpenFlow 1.3 has, and
// compares: what comes back must equal what was sent, as OpenFlowJ's objects; and every message of
// the switch must give the same bytes again when OpenFlowJ has read and written it.  Prints a line a
// step; ends with status 0 when all is well.

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import org.projectfloodlight.openflow.protocol.*;
import org.projectfloodlight.openflow.protocol.action.OFAction;
import org.projectfloodlight.openflow.protocol.action.OFActions;
import org.projectfloodlight.openflow.protocol.errormsg.*;
import org.projectfloodlight.openflow.protocol.instruction.OFInstructions;
import org.projectfloodlight.openflow.protocol.match.Match;
import org.projectfloodlight.openflow.protocol.match.MatchField;
import org.projectfloodlight.openflow.protocol.meterband.OFMeterBand;
import org.projectfloodlight.openflow.protocol.oxm.OFOxms;
import org.projectfloodlight.openflow.types.*;

public class Check {
    static final OFFactory of = OFFactories.getFactory(OFVersion.OF_13);
    static final OFActions act = of.actions();
    static final OFInstructions inst = of.instructions();
    static final OFOxms oxm = of.oxms();
    static final byte[] FRAME = new byte[60];

    final DataInputStream in;
    final OutputStream out;
    final Queue<OFMessage> unasked = new ArrayDeque<>();

    Check(Socket s) throws IOException {
        s.setSoTimeout(20000);
        in = new DataInputStream(s.getInputStream());
        out = s.getOutputStream();
    }

    static byte[] bytes(OFMessage m) {
        ByteBuf buf = Unpooled.buffer();
        m.writeTo(buf);
        byte[] b = new byte[buf.readableBytes()];
        buf.readBytes(b);
        return b;
    }

    static void want(boolean ok, Object what) {
        if (!ok)
            throw new AssertionError(String.valueOf(what));
    }

    static void same(Object sent, Object back) {
        want(sent.equals(back), "sent " + sent + "\n  got " + back);
    }

    void send(OFMessage m) throws IOException {
        out.write(bytes(m));
    }

    OFMessage read() throws Exception {
        byte[] head = new byte[8];
        in.readFully(head);
        int length = (head[2] & 0xff) << 8 | head[3] & 0xff;
        byte[] whole = Arrays.copyOf(head, length);
        in.readFully(whole, 8, length - 8);
        OFMessage m = OFFactories.getGenericReader().readFrom(Unpooled.wrappedBuffer(whole));
        want(Arrays.equals(whole, bytes(m)), "written again, other bytes: " + m + "\n"
             + hex(whole) + "\n" + hex(bytes(m)));
        return m;
    }

    static String hex(byte[] b) {
        StringBuilder s = new StringBuilder();
        for (byte x : b)
            s.append(String.format("%02x", x));
        return s.toString();
    }

    /** The answer; messages that nobody asked for are kept. */
    OFMessage answer(long xid) throws Exception {
        while (true) {
            OFMessage m = read();
            if (m.getType() == OFType.ECHO_REQUEST)
                send(of.echoReply(((OFEchoRequest) m).getData()));
            else if (m.getXid() == xid && m.getXid() != 0)
                return m;
            else
                unasked.add(m);
        }
    }

    OFMessage ask(OFMessage m) throws Exception {
        send(m);
        return answer(m.getXid());
    }

    /** All parts of a multipart reply */
    <T extends OFStatsReply> List<T> stats(OFStatsRequest<T> request) throws Exception {
        List<T> parts = new ArrayList<>();
        send(request);
        do {
            OFMessage m = answer(request.getXid());
            want(m.getType() == OFType.STATS_REPLY, m);
            @SuppressWarnings("unchecked") T part = (T) m;
            parts.add(part);
        } while (parts.get(parts.size() - 1).getFlags().contains(OFStatsReplyFlags.REPLY_MORE));
        return parts;
    }

    /** Sent, and not refused */
    void done(OFMessage m) throws Exception {
        send(m);
        OFMessage first = ask(of.barrierRequest());
        want(first.getType() == OFType.BARRIER_REPLY, first);
        for (OFMessage u : unasked)
            want(u.getType() != OFType.ERROR, u);
    }

    /** What comes unasked, waited for by sending barriers */
    <T extends OFMessage> T event(Class<T> kind) throws Exception {
        for (long end = System.nanoTime() + 20_000_000_000L; System.nanoTime() < end;) {
            for (OFMessage m; (m = unasked.poll()) != null;)
                if (kind.isInstance(m))
                    return kind.cast(m);
            ask(of.barrierRequest());
        }
        throw new AssertionError("no " + kind.getSimpleName());
    }

    void step(String name) {
        System.out.println("ok " + name);
    }

    void handshake() throws Exception {
        send(of.hello(List.of(of.helloElemVersionbitmap(List.of(U32.of(1 << 4))))));
        want(read().getType() == OFType.HELLO, "no hello");
        OFFeaturesReply f = (OFFeaturesReply) ask(of.featuresRequest());
        same(DatapathId.of(1), f.getDatapathId());
        want(f.getNTables() > 1 && f.getCapabilities().contains(OFCapabilities.QUEUE_STATS), f);
        step("handshake");
    }

    void configuration() throws Exception {
        done(of.buildSetConfig().setMissSendLen(0xffff).build());
        same(0xffff, ((OFGetConfigReply) ask(of.getConfigRequest())).getMissSendLen());
        OFAsyncGetReply a = (OFAsyncGetReply) ask(of.asyncGetRequest(List.of()));
        want(a.getPacketInMaskEqualMaster() != 0 && a.getPacketInMaskSlave() == 0, a);
        step("configuration");
    }

    static OFMessage role(OFControllerRole role, long generation) {
        return of.buildRoleRequest().setRole(role).setGenerationId(U64.of(generation)).build();
    }

    void roles() throws Exception {
        OFRoleReply r = (OFRoleReply) ask(role(OFControllerRole.ROLE_MASTER, 5));
        same(OFControllerRole.ROLE_MASTER, r.getRole());
        OFRoleRequestFailedErrorMsg e = (OFRoleRequestFailedErrorMsg)
            ask(role(OFControllerRole.ROLE_SLAVE, 4));
        same(OFRoleRequestFailedCode.STALE, e.getCode());
        step("roles");
    }

    void descriptions() throws Exception {
        OFDescStatsReply d = stats(of.descStatsRequest(Set.of())).get(0);
        want(d.getSwDesc().startsWith("ofqos"), d);
        List<OFPortDesc> ports = stats(of.buildPortDescStatsRequest().build()).get(0).getEntries();
        want(ports.size() == 2 && ports.get(1).getName().equals("p2"), ports);
        want(!stats(of.tableStatsRequest(Set.of())).get(0).getEntries().isEmpty(), "no tables");
        int tables = 0;
        for (OFTableFeaturesStatsReply part : stats(of.buildTableFeaturesStatsRequest().build()))
            tables += part.getEntries().size();
        want(tables > 1, "table features of " + tables);
        stats(of.groupFeaturesStatsRequest(Set.of()));
        OFMeterFeatures m = stats(of.meterFeaturesStatsRequest(Set.of())).get(0).getFeatures();
        want(m.getMaxMeter() > 0, m);
        step("descriptions");
    }

    static Match match(Object... fields) {
        Match.Builder b = of.buildMatch();
        for (int i = 0; i < fields.length; i += 2) {
            @SuppressWarnings("unchecked") MatchField<IPv4Address> f =
                (MatchField<IPv4Address>) fields[i];
            if (fields[i + 1] instanceof IPv4AddressWithMask)
                b.setMasked(f, (IPv4AddressWithMask) fields[i + 1]);
            else
                exact(b, (MatchField<?>) fields[i], fields[i + 1]);
        }
        return b.build();
    }

    @SuppressWarnings("unchecked")
    static <F extends OFValueType<F>> void exact(Match.Builder b, MatchField<?> f, Object value) {
        b.setExact((MatchField<F>) f, (F) value);
    }

    List<OFFlowAdd> flows() {
        List<OFFlowAdd> all = new ArrayList<>();
        Match[] matches = {
            match(MatchField.IN_PORT, OFPort.of(1), MatchField.ETH_DST, MacAddress.of(0x123456L)),
            match(MatchField.ETH_TYPE, EthType.IPv4, MatchField.IPV4_SRC,
                  IPv4AddressWithMask.of("10.1.0.0/16"), MatchField.IP_PROTO, IpProtocol.TCP,
                  MatchField.TCP_DST, TransportPort.of(80)),
            match(MatchField.ETH_TYPE, EthType.IPv6, MatchField.IPV6_DST,
                  IPv6Address.of("fd00::2"), MatchField.IP_PROTO, IpProtocol.UDP,
                  MatchField.UDP_SRC, TransportPort.of(53)),
            match(MatchField.ETH_TYPE, EthType.ARP, MatchField.ARP_OP, ArpOpcode.REQUEST,
                  MatchField.ARP_TPA, IPv4Address.of("10.0.0.2")),
            match(MatchField.VLAN_VID, OFVlanVidMatch.ofVlan(5), MatchField.VLAN_PCP,
                  VlanPcp.of((byte) 3)),
            match(MatchField.ETH_TYPE, EthType.MPLS_UNICAST, MatchField.MPLS_LABEL, U32.of(77)),
            match(MatchField.METADATA, OFMetadata.of(U64.of(9))),
        };
        List<List<OFAction>> actions = List.of(
            List.of(act.output(OFPort.of(2), 0xffff)),
            List.of(act.setQueue(7), act.decNwTtl(), act.output(OFPort.CONTROLLER, 128)),
            List.of(act.setField(oxm.ipv6Src(IPv6Address.of("fd00::9"))), act.group(OFGroup.of(1))),
            List.of(act.output(OFPort.FLOOD, 0)),
            List.of(act.popVlan(), act.output(OFPort.IN_PORT, 0)),
            List.of(act.setMplsTtl((short) 9), act.popMpls(EthType.IPv4)),
            List.of(act.pushVlan(EthType.VLAN_FRAME),
                    act.setField(oxm.vlanVid(OFVlanVidMatch.ofVlan(6))), act.output(OFPort.ALL, 0)));
        for (int i = 0; i < matches.length; i++)
            all.add(of.buildFlowAdd().setMatch(matches[i]).setPriority(100 + i)
                .setCookie(U64.of(i)).setIdleTimeout(600).setBufferId(OFBufferId.NO_BUFFER)
                .setOutPort(OFPort.ANY).setOutGroup(OFGroup.ANY)
                .setFlags(Set.of(OFFlowModFlags.SEND_FLOW_REM))
                .setInstructions(List.of(inst.meter(1), inst.applyActions(actions.get(i)),
                    inst.writeMetadata(U64.of(3), U64.of(15)), inst.gotoTable(TableId.of(1))))
                .build());
        return all;
    }

    void groupsAndMeters() throws Exception {
        List<OFBucket> buckets = List.of(
            of.buildBucket().setWeight(2).setWatchPort(OFPort.ANY).setWatchGroup(OFGroup.ANY)
                .setActions(List.of(act.output(OFPort.of(1), 0))).build(),
            of.buildBucket().setWeight(3).setWatchPort(OFPort.ANY).setWatchGroup(OFGroup.ANY)
                .setActions(List.of(act.output(OFPort.of(2), 0))).build());
        done(of.buildGroupAdd().setGroup(OFGroup.of(1)).setGroupType(OFGroupType.SELECT)
            .setBuckets(buckets).build());
        OFGroupDescStatsEntry g = stats(of.buildGroupDescStatsRequest().build()).get(0).getEntries()
            .get(0);
        same(OFGroupType.SELECT, g.getGroupType());
        same(buckets, g.getBuckets());
        same(2, stats(of.buildGroupStatsRequest().setGroup(OFGroup.ALL).build()).get(0)
             .getEntries().get(0).getBucketStats().size());
        List<OFMeterBand> bands = List.of(of.meterBands().drop(1000, 100),
                                          of.meterBands().buildDscpRemark()
                                              .setRate(500).setBurstSize(50).setPrecLevel((short) 1).build());
        done(of.buildMeterMod().setCommand(OFMeterModCommand.ADD).setMeterId(1)
            .setFlags(Set.of(OFMeterFlags.KBPS, OFMeterFlags.BURST)).setMeters(bands).build());
        OFMeterConfig m = stats(of.buildMeterConfigStatsRequest().setMeterId(0xffffffffL).build())
            .get(0).getEntries().get(0);
        same(bands, m.getEntries());
        step("groups and meters");
    }

    void flowsComeBack() throws Exception {
        List<OFFlowAdd> sent = flows();
        for (OFFlowAdd f : sent)
            done(f);
        Map<U64, OFFlowStatsEntry> back = new HashMap<>();
        for (OFFlowStatsReply part : stats(of.buildFlowStatsRequest().setTableId(TableId.ALL)
                .setOutPort(OFPort.ANY).setOutGroup(OFGroup.ANY).setMatch(match()).build()))
            for (OFFlowStatsEntry e : part.getEntries())
                back.put(e.getCookie(), e);
        same(sent.size(), back.size());
        for (OFFlowAdd f : sent) {
            OFFlowStatsEntry e = back.get(f.getCookie());
            same(f.getMatch(), e.getMatch());
            same(f.getInstructions(), e.getInstructions());
            same(f.getFlags(), e.getFlags());
            same(List.of(f.getPriority(), f.getIdleTimeout()),
                 List.of(e.getPriority(), e.getIdleTimeout()));
        }
        OFAggregateStatsReply a = stats(of.buildAggregateStatsRequest().setTableId(TableId.ALL)
            .setOutPort(OFPort.ANY).setOutGroup(OFGroup.ANY).setMatch(match()).build()).get(0);
        same((long) sent.size(), a.getFlowCount());
        same((long) sent.size(), stats(of.buildMeterStatsRequest().setMeterId(1).build()).get(0)
             .getEntries().get(0).getFlowCount());
        step("flows");
    }

    void refusals() throws Exception {
        OFFlowAdd bad = of.buildFlowAdd().setPriority(1).setInstructions(List.of(
            inst.applyActions(List.of(act.group(OFGroup.of(99)))))).build();
        OFBadActionErrorMsg e = (OFBadActionErrorMsg) ask(bad);
        same(OFBadActionCode.BAD_OUT_GROUP, e.getCode());
        OFGroupModFailedErrorMsg g = (OFGroupModFailedErrorMsg) ask(of.buildGroupAdd()
            .setGroup(OFGroup.of(1)).setGroupType(OFGroupType.ALL).build());
        same(OFGroupModFailedCode.GROUP_EXISTS, g.getCode());
        step("refusals");
    }

    void events() throws Exception {
        unasked.clear();
        done(of.buildFlowAdd().setPriority(50).setCookie(U64.of(50)).setMatch(
            match(MatchField.IN_PORT, OFPort.of(2))).setFlags(Set.of(OFFlowModFlags.SEND_FLOW_REM))
            .setInstructions(List.of(inst.applyActions(List.of(
                act.output(OFPort.CONTROLLER, 0xffff))))).build());
        send(of.buildPacketOut().setBufferId(OFBufferId.NO_BUFFER).setInPort(OFPort.of(2))
            .setActions(List.of(act.output(OFPort.TABLE, 0))).setData(FRAME).build());
        OFPacketIn p = event(OFPacketIn.class);
        same(U64.of(50), p.getCookie());
        same(OFPort.of(2), p.getMatch().get(MatchField.IN_PORT));
        want(Arrays.equals(FRAME, p.getData()), p);
        send(of.buildFlowDelete().setTableId(TableId.ALL).setOutPort(OFPort.ANY)
            .setOutGroup(OFGroup.ANY).setCookie(U64.of(50)).setCookieMask(U64.NO_MASK).build());
        OFFlowRemoved r = event(OFFlowRemoved.class);
        same(List.of(50, 1L, 60L), List.of(r.getPriority(), r.getPacketCount().getValue(),
                                           r.getByteCount().getValue()));
        same(OFFlowRemovedReason.DELETE, r.getReason());
        step("events");
    }

    void portsAndQueues() throws Exception {
        same(2, stats(of.buildPortStatsRequest().setPortNo(OFPort.ANY).build()).get(0)
             .getEntries().size());
        OFQueueStatsEntry q = stats(of.buildQueueStatsRequest().setPortNo(OFPort.ANY)
            .setQueueId(0xffffffffL).build()).get(0).getEntries().get(0);
        same(List.of(2, 10L), List.of(q.getPortNo().getPortNumber(), q.getQueueId()));
        OFQueueGetConfigReply c = (OFQueueGetConfigReply)
            ask(of.queueGetConfigRequest(OFPort.of(2)));
        same(10L, c.getQueues().get(0).getQueueId());
        same(2, c.getQueues().get(0).getProperties().size());
        unasked.clear();
        for (boolean down : new boolean[] {true, false}) {
            OFPortDesc port = stats(of.buildPortDescStatsRequest().build()).get(0).getEntries().get(0);
            done(of.buildPortMod().setPortNo(port.getPortNo()).setHwAddr(port.getHwAddr())
                .setConfig(down ? Set.of(OFPortConfig.NO_FWD) : Set.of())
                .setMask(Set.of(OFPortConfig.NO_FWD)).build());
            OFPortStatus s = event(OFPortStatus.class);
            same(OFPortReason.MODIFY, s.getReason());
            same(down, s.getDesc().getConfig().contains(OFPortConfig.NO_FWD));
        }
        step("ports and queues");
    }

    public static void main(String[] args) throws Exception {
        Arrays.fill(FRAME, (byte) 0x22);
        try (ServerSocket listening = new ServerSocket(6653, 1, InetAddress.getLoopbackAddress())) {
            System.out.println("listening");
            Check c = new Check(listening.accept());
            c.handshake();
            c.configuration();
            c.roles();
            c.descriptions();
            c.groupsAndMeters();
            c.flowsComeBack();
            c.refusals();
            c.events();
            c.portsAndQueues();
        }
        System.out.println("end");
    }
}
