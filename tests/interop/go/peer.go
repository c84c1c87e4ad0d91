// SPDX-License-Identifier: Apache-2.0

// peer: grpc-go as a launcher and as what reports to the agent, driven by lines on standard input.
//
//	peer SOCKETS CALLS DOMAIN
//
// Serves kubevirt.cmd.v1.Cmd at SOCKETS/launcher-sock (with its pod's file system at hand, see test_grpc_go.py), notes
// each call as "METHOD BASE64" in the file CALLS, with the time that it may take ("left-ms N"), and has the domain that the file DOMAIN holds. RPCs that it does not
// know it answers with Unimplemented, as grpc-go does. Messages travel as bytes: what they hold is the test's business.
//
// Commands, each answered by a line "ok TEXT" or "error TEXT":
//
//	dial PATH              a connection to the agent
//	send METHOD BASE64     a call on it: the answer's bytes in base64
//	deadline METHOD MS     how long that method takes from now on
//	answer METHOD BASE64   what it answers from now on, whatever the method
//	strict                 knows only what "answer" told from now on
//	connections            how many connections this server has had so far
//	cut                    closes every connection of the server under the client's feet
//	graceful               GracefulStop (GOAWAY, then the end of what is under way), then serves anew
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// A message as its bytes.
type rawCodec struct{}

func (rawCodec) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(b []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), b...)
	return nil
}
func (rawCodec) Name() string   { return "proto" }
func (rawCodec) String() string { return "proto" }

// Keeps the connections that it hands out.
type listener struct {
	net.Listener
	mu    sync.Mutex
	open  []net.Conn
	total int
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.open = append(l.open, conn)
		l.total++
		l.mu.Unlock()
	}
	return conn, err
}

func (l *listener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.open {
		conn.Close()
	}
	l.open = nil
}

type launcher struct {
	socket, domain string
	calls          *os.File
	mu             sync.Mutex
	delays         map[string]time.Duration
	answers        map[string][]byte
	listener       *listener
	server         *grpc.Server
}

var known = map[string]bool{
	"SyncVirtualMachine": true, "ShutdownVirtualMachine": true, "KillVirtualMachine": true, "DeleteVirtualMachine": true,
	"PauseVirtualMachine": true, "Ping": true, "GetDomain": true, "Info": true,
}

func field(number byte, bytes []byte) []byte {
	out := []byte{number<<3 | 2}
	for n := len(bytes); ; n >>= 7 {
		if n < 0x80 {
			out = append(out, byte(n))
			break
		}
		out = append(out, byte(n)|0x80)
	}
	return append(out, bytes...)
}

var success = []byte{1 << 3, 1} // Response{success: true}

func (l *launcher) answer(method string) []byte {
	switch method {
	case "Info":
		return field(1, []byte{1}) // supported versions, packed
	case "GetDomain":
		text, err := os.ReadFile(l.domain)
		if err != nil {
			return field(1, success)
		}
		return append(field(1, success), field(2, text)...)
	}
	return success
}

func (l *launcher) handle(_ interface{}, stream grpc.ServerStream) error {
	var request []byte
	full, _ := grpc.MethodFromServerStream(stream)
	method := path.Base(full)
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	l.mu.Lock()
	fmt.Fprintf(l.calls, "%s %s\n", method, base64.StdEncoding.EncodeToString(request))
	if deadline, ok := stream.Context().Deadline(); ok {
		fmt.Fprintf(l.calls, "left-ms %d\n", time.Until(deadline).Milliseconds())
	}
	delay := l.delays[method]
	answer, told := l.answers[method]
	isKnown := told || known[method]
	l.mu.Unlock()
	if !isKnown {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	select {
	case <-time.After(delay):
	case <-stream.Context().Done():
		l.mu.Lock()
		fmt.Fprintf(l.calls, "cancelled:%s %s\n", method, "")
		l.mu.Unlock()
		return status.FromContextError(stream.Context().Err()).Err() // as a real server of today: not Unknown
	}
	reply := answer
	if !told {
		reply = l.answer(method)
	}
	return stream.SendMsg(&reply)
}

func (l *launcher) serve() error {
	os.Remove(l.socket)
	inner, err := net.Listen("unix", l.socket)
	if err != nil {
		return err
	}
	l.listener = &listener{Listener: inner}
	l.server = grpc.NewServer(grpc.CustomCodec(rawCodec{}), grpc.UnknownServiceHandler(l.handle),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	go l.server.Serve(l.listener)
	return nil
}

func (l *launcher) command(words []string, conn **grpc.ClientConn) (string, error) {
	switch words[0] {
	case "dial":
		var err error
		*conn, err = grpc.Dial("localhost", grpc.WithInsecure(), grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", words[1])
			}))
		return "", err
	case "send":
		request, err := base64.StdEncoding.DecodeString(strings.Join(words[2:], ""))
		if err != nil {
			return "", err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		var reply []byte
		err = (*conn).Invoke(ctx, words[1], &request, &reply, grpc.WaitForReady(true))
		return base64.StdEncoding.EncodeToString(reply), err
	case "deadline":
		ms, err := strconv.Atoi(words[2])
		l.mu.Lock()
		l.delays[words[1]] = time.Duration(ms) * time.Millisecond
		l.mu.Unlock()
		return "", err
	case "answer":
		message, err := base64.StdEncoding.DecodeString(strings.Join(words[2:], ""))
		l.mu.Lock()
		l.answers[words[1]] = message
		l.mu.Unlock()
		return "", err
	case "strict":
		l.mu.Lock()
		known = map[string]bool{}
		l.mu.Unlock()
		return "", nil
	case "connections":
		l.listener.mu.Lock()
		defer l.listener.mu.Unlock()
		return strconv.Itoa(l.listener.total), nil
	case "cut":
		l.listener.cut()
		return "", nil
	case "graceful":
		l.server.GracefulStop()
		return "", l.serve()
	}
	return "", fmt.Errorf("no such command: %s", words[0])
}

func main() {
	calls, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	l := &launcher{socket: os.Args[1] + "/launcher-sock", calls: calls, domain: os.Args[3], delays: map[string]time.Duration{},
		answers: map[string][]byte{}}
	if err := l.serve(); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	var conn *grpc.ClientConn
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return
		}
		text, err := l.command(strings.Fields(line), &conn)
		if err != nil {
			fmt.Printf("error %q\n", err)
		} else {
			fmt.Println("ok", text)
		}
	}
}
